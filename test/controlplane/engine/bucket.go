package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// A bucket is a call of aws s3 sync: the objects below a prefix, into a directory.
type bucket struct {
	client            *s3.Client
	name, prefix, dir string
	// clean removes files that are no objects.
	clean bool
}

// awsCLI copies a bucket as AWS's command line does: it lists the objects, and fetches each that it does not
// have in the same size. A file gets its name once all of it has come. The library signs the requests.
func awsCLI(ctx context.Context, args []string, env func(string) string) (int, error) {
	if len(args) < 2 || args[0] != "s3" || args[1] != "sync" {
		return 2, errors.New("aws: the stand-in knows s3 sync only")
	}
	f := read(args[2:])
	words := f[""]
	from, ok := "", false
	if len(words) == 2 {
		from, ok = strings.CutPrefix(words[0], "s3://")
	}
	if !ok {
		return 2, errors.New("aws: the stand-in needs a bucket and a directory")
	}
	b := bucket{dir: words[1], clean: f.has("--delete")}
	b.name, b.prefix, _ = strings.Cut(from, "/")
	if b.prefix != "" {
		b.prefix = strings.TrimSuffix(b.prefix, "/") + "/"
	}
	o := s3.Options{
		Region:                     or(env("AWS_REGION"), "us-east-1"),
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if at := env("AWS_ENDPOINT_URL"); at != "" {
		o.BaseEndpoint = &at
		u, err := url.Parse(at)
		o.UsePathStyle = err == nil && net.ParseIP(u.Hostname()) != nil
	}
	switch id, secret := env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"); {
	case f.has("--no-sign-request"):
		o.Credentials = aws.AnonymousCredentials{}
	case id == "" || secret == "":
		return 1, errors.New("fatal error: Unable to locate credentials")
	default:
		own := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: env("AWS_SESSION_TOKEN")}
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return own, nil })
	}
	b.client = s3.New(o)
	if err := b.sync(ctx); err != nil {
		return 1, fmt.Errorf("fatal error: %w", explained(err))
	}
	return 0, nil
}

// explained is an error of S3 as AWS's command line tells it.
func explained(err error) error {
	var operation *smithy.OperationError
	var api smithy.APIError
	if errors.As(err, &operation) && errors.As(err, &api) {
		return fmt.Errorf("An error occurred (%s) when calling the %s operation: %s", api.ErrorCode(), operation.Operation(), api.ErrorMessage()) //nolint:staticcheck // So it is told.
	}
	return err
}

func (b *bucket) sync(ctx context.Context) error {
	objects := map[string]bool{}
	for pages := s3.NewListObjectsV2Paginator(b.client, &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: &b.prefix}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			name := strings.TrimPrefix(*o.Key, b.prefix)
			if name == "" || strings.HasSuffix(name, "/") {
				continue // A directory of consoles.
			}
			if !filepath.IsLocal(name) {
				return fmt.Errorf("the key %q leads elsewhere", *o.Key)
			}
			file := filepath.Join(b.dir, name)
			objects[file] = true
			if err := b.fetch(ctx, &o, file); err != nil {
				return err
			}
		}
	}
	if !b.clean {
		return nil
	}
	return filepath.WalkDir(b.dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || objects[file] {
			return err
		}
		return os.Remove(file) //nolint:gosec // What is in the directory is its own.
	})
}

// fetch fetches an object, unless a file is there in the same size that is not newer. What a killed call leaves
// behind has another name than the file.
func (b *bucket) fetch(ctx context.Context, of *types.Object, file string) error {
	if info, err := os.Stat(file); err == nil && info.Size() == *of.Size && !info.ModTime().After(*of.LastModified) {
		return nil
	}
	o, err := b.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.name, Key: of.Key})
	if err != nil {
		return err
	}
	defer o.Body.Close() //nolint:errcheck // It is read to its end.
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, o.Body); err != nil {
		return errors.Join(err, part.Close())
	}
	if err := errors.Join(part.Close(), os.Chtimes(part.Name(), *of.LastModified, *of.LastModified)); err != nil {
		return err
	}
	return os.Rename(part.Name(), file)
}
