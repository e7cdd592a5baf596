/*
Package simulation runs the function on a model of all that is around it, lets random things happen, and checks what has to hold.
The same seed always gives the same events.

What is modelled:

  - The API server: objects with resourceVersion, generation, finalizers and deletionTimestamp, server-side apply that compares a
    resourceVersion, and garbage collection of what has lost its owner. A process sees each kind by a cache of its own, which lags.
    A new process may start with older caches.
  - Crossplane: composite resources are read from caches, and the function is called until its requirements are stable. What is
    not desired is deleted, and then the rest is applied in random order. A conflict or a failure stops it part-way. What wakes a
    composite resource is tracked as Crossplane does it. The circuit breaker is not modelled.
  - provider-kubernetes with watches: Objects, their management policies, and collections of nodes.
  - Remote clusters: pods of LeaderWorkerSets take GPUs of nodes, get ready later, and go later. Nodes are bins: which of them has
    which pod is not modelled, so pods never wait for room that is only scattered.
  - The control plane's own cluster, in TestHere, by the controllers that remote clusters have.
  - Kueue, in some clusters of TestKueue: a Workload for each LeaderWorkerSet, a number of GPUs that it admits, and evictions.

The model knows no format of the function: it stores what is returned. The oracle reads rendered manifests, and the pods of the
remote clusters. It has no code of the function. These are its invariants:

  - no double booking: see checkObject.
  - growth fits: the same, for a LeaderWorkerSet whose pods grow.
  - room of the leaving: the same, also counting Objects that are being deleted, and those whose service is gone.
  - never zero copies: see afterApply.
  - quiet: after the last event, nothing changes any more but by time.
  - placed: then no service waits for room that is free.
  - reserved: then whatever runs is reserved in its cluster.
  - runs: then all that is placed is ready.
  - freed: then all room that is free can be reserved, and nothing runs without an Object.
  - abandoned is left: no service keeps Objects for an abandoned cluster.
  - within quota: see checkQuota. The invariants placed and freed go by quotas, too (TestQuotas).
  - queued: whatever starts where Kueue admits can be found by Kueue (TestKueue).
  - told: no service that waits for Kueue in its cluster is said to be placed (TestKueue).
  - requests can wait: see checkReached. Only where services stop while nobody uses them (TestSleepers).
  - requests are answered: see checkAnswers. Only where nothing but endpoint pickers, connections and single writes fails (TestRoll, TestHere).
*/
package simulation
