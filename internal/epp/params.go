package epp

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fusioninfer/function-inferenceservice/internal/api/check"
	"github.com/fusioninfer/function-inferenceservice/internal/text"
)

// The types below are the parameters of the plugins. Where the dialects differ, each
// dialect has its own type.

func newParams[T any]() any { return new(T) }

// A checker checks what the types of its fields cannot express.
type checker interface {
	check(path *field.Path) field.ErrorList
}

// defaultBlockSizeTokens is the default of both dialects.
const defaultBlockSizeTokens = 16

type prefixCache struct {
	AutoTune               *bool  `json:"autoTune"`
	BlockSizeTokens        *int64 `json:"blockSizeTokens"`
	BlockSize              int64  `json:"blockSize"`
	MaxPrefixBlocksToMatch int64  `json:"maxPrefixBlocksToMatch"`
	MaxPrefixTokensToMatch int64  `json:"maxPrefixTokensToMatch"`
	LRUCapacityPerServer   int64  `json:"lruCapacityPerServer"`
}

func (p *prefixCache) check(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	tokens := int64(defaultBlockSizeTokens)
	if p.BlockSizeTokens != nil {
		tokens = *p.BlockSizeTokens
	}
	if tuned := p.AutoTune == nil || *p.AutoTune; tokens <= 0 && (!tuned || p.BlockSize > 0) {
		errs = append(errs, field.Invalid(path.Child("blockSizeTokens"), tokens, "must be above 0"))
	}
	if p.MaxPrefixTokensToMatch < 0 {
		errs = append(errs, field.Invalid(path.Child("maxPrefixTokensToMatch"), p.MaxPrefixTokensToMatch, "must be 0 (no limit) or more"))
	}
	return errs
}

type prefixScore struct {
	PrefixMatchInfoProducerName string   `json:"prefixMatchInfoProducerName"`
	MatchLengthWeight           float64  `json:"matchLengthWeight"`
	MatchLengthScaleTokens      *float64 `json:"matchLengthScaleTokens"`
}

func (p *prefixScore) check(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.MatchLengthWeight < 0 || p.MatchLengthWeight > 1 {
		errs = append(errs, field.Invalid(path.Child("matchLengthWeight"), p.MatchLengthWeight, "must be from 0 to 1"))
	}
	if s := p.MatchLengthScaleTokens; s != nil && *s <= 0 && p.MatchLengthWeight > 0 {
		errs = append(errs, field.Invalid(path.Child("matchLengthScaleTokens"), *s, "must be above 0 where matchLengthWeight is"))
	}
	return errs
}

type pick struct {
	MaxNumOfEndpoints int64 `json:"maxNumOfEndpoints"`
}

type tokenLoad struct {
	QueueThresholdTokens     int64  `json:"queueThresholdTokens"`
	InFlightLoadProducerName string `json:"inFlightLoadProducerName"`
}

type utilization struct {
	QueueDepthThreshold       *int64           `json:"queueDepthThreshold"`
	KVCacheUtilThreshold      *float64         `json:"kvCacheUtilThreshold"`
	MetricsStalenessThreshold *metav1.Duration `json:"metricsStalenessThreshold"`
	Headroom                  *float64         `json:"headroom"`
}

func (u *utilization) check(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if v := u.QueueDepthThreshold; v != nil && *v <= 0 {
		errs = append(errs, field.Invalid(path.Child("queueDepthThreshold"), *v, "must be above 0"))
	}
	if v := u.KVCacheUtilThreshold; v != nil && (*v <= 0 || *v > 1) {
		errs = append(errs, field.Invalid(path.Child("kvCacheUtilThreshold"), *v, "must be above 0 and at most 1"))
	}
	if v := u.MetricsStalenessThreshold; v != nil && v.Duration <= 0 {
		errs = append(errs, field.Invalid(path.Child("metricsStalenessThreshold"), v.Duration.String(), "must be above 0"))
	}
	if v := u.Headroom; v != nil && *v < 0 {
		errs = append(errs, field.Invalid(path.Child("headroom"), *v, "must be 0 or more"))
	}
	return errs
}

type metricsSource struct {
	Scheme             *string `json:"scheme"`
	Path               string  `json:"path"`
	InsecureSkipVerify bool    `json:"insecureSkipVerify"`
}

func (m *metricsSource) check(path *field.Path) field.ErrorList {
	schemes := []string{"http", "https"}
	if m.Scheme == nil || slices.Contains(schemes, *m.Scheme) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path.Child("scheme"), text.Value(*m.Scheme), schemes)}
}

type byLabel struct {
	Label         string   `json:"label"`
	ValidValues   []string `json:"validValues"`
	AllowsNoLabel bool     `json:"allowsNoLabel"`
}

func (b *byLabel) check(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if b.Label == "" {
		errs = append(errs, field.Required(path.Child("label"), "must be the label to look at"))
	}
	if len(b.ValidValues) == 0 && !b.AllowsNoLabel {
		errs = append(errs, field.Required(path.Child("validValues"), "must have the values to keep, unless allowsNoLabel is true"))
	}
	return errs
}

type labelSelector metav1.LabelSelector

func (l *labelSelector) check(path *field.Path) field.ErrorList {
	if _, err := metav1.LabelSelectorAsSelector((*metav1.LabelSelector)(l)); err != nil {
		return field.ErrorList{field.Invalid(path, "{...}", "must be a label selector: "+text.Cut(err.Error(), text.MaxMessage))}
	}
	return nil
}

type prefixDecider struct {
	NonCachedTokens int64 `json:"nonCachedTokens"`
	PromptTokens    int64 `json:"promptTokens"`
}

func (p *prefixDecider) check(path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if p.NonCachedTokens < 0 {
		errs = append(errs, field.Invalid(path.Child("nonCachedTokens"), p.NonCachedTokens, "must be 0 (never disaggregate) or more"))
	}
	if p.PromptTokens < 0 {
		errs = append(errs, field.Invalid(path.Child("promptTokens"), p.PromptTokens, "must be 0 or more"))
	}
	return errs
}

// disagg has the nested fields and the deprecated flat ones. A configuration may have only
// one of the two kinds.
type disagg struct {
	StageOrder string          `json:"stageOrder"`
	Profiles   *disaggProfiles `json:"profiles"`
	Deciders   *disaggDeciders `json:"deciders"`

	DecodeProfile            string `json:"decodeProfile"`
	PrefillProfile           string `json:"prefillProfile"`
	EncodeProfile            string `json:"encodeProfile"`
	PrefillDeciderPluginName string `json:"prefillDeciderPluginName"`
	EncodeDeciderPluginName  string `json:"encodeDeciderPluginName"`
	DeciderPluginName        string `json:"deciderPluginName"`
}

type disaggProfiles struct {
	Decode  string `json:"decode"`
	Prefill string `json:"prefill"`
	Encode  string `json:"encode"`
}

type disaggDeciders struct {
	Prefill string `json:"prefill"`
	Encode  string `json:"encode"`
}

type pdProfile struct {
	DecodeProfile               string `json:"decodeProfile"`
	PrefillProfile              string `json:"prefillProfile"`
	PrefixPluginType            string `json:"prefixPluginType"`
	PrefixPluginName            string `json:"prefixPluginName"`
	PrimaryPort                 int64  `json:"primaryPort"`
	DeciderPluginName           string `json:"deciderPluginName"`
	PrefixMatchInfoProducerName string `json:"prefixMatchInfoProducerName"`
}

func (p *pdProfile) check(path *field.Path) field.ErrorList { return checkPort(path, p.PrimaryPort) }

type dataParallel struct {
	PrimaryPort int64 `json:"primaryPort"`
}

func (d *dataParallel) check(path *field.Path) field.ErrorList { return checkPort(path, d.PrimaryPort) }

func checkPort(path *field.Path, port int64) field.ErrorList {
	if port >= 0 && port <= check.MaxPort {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("primaryPort"), port, fmt.Sprintf("must be from 1 to %d, or left out", check.MaxPort))}
}

type headersHandler struct {
	PrefillProfile string `json:"prefillProfile"`
	EncodeProfile  string `json:"encodeProfile"`
}

type activeRequest struct {
	RequestTimeout           string   `json:"requestTimeout"`
	IdleThreshold            int64    `json:"idleThreshold"`
	MaxBusyScore             *float64 `json:"maxBusyScore"`
	InFlightLoadProducerName string   `json:"inFlightLoadProducerName"`
}

type contextLength struct {
	Label           string `json:"label"`
	EnableFiltering bool   `json:"enableFiltering"`
}

type loadAware struct {
	Threshold int64 `json:"threshold"`
}

type producerName struct {
	ProducerName string `json:"producerName"`
}

type noHitLRU struct {
	PrefixPluginType            string `json:"prefixPluginType"`
	PrefixPluginName            string `json:"prefixPluginName"`
	LRUSize                     int64  `json:"lruSize"`
	PrefixMatchInfoProducerName string `json:"prefixMatchInfoProducerName"`
}
