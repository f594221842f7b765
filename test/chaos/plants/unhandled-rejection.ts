/** A bug on purpose: a promise is rejected, and nobody looks. */
setTimeout(() => void Promise.reject(new Error('planted')), 4000).unref()
