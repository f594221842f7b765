// The object `app` of the SDK, with the app's id, web API, events and `stop` listeners.

class ApiError extends Error {
  status = 404
  code = 'not_found'
}

export function createApp(id, version, connection) {
  const routes = []
  const stopListeners = []

  const route = (method) => (path, handler) => {
    if (typeof handler !== 'function')
      throw new TypeError(`app.api.${method.toLowerCase()}: the handler is not a function`)
    routes.push({ method, segments: segmentsOf(path), handler })
  }

  return {
    public: Object.freeze({
      id,
      version,
      api: Object.freeze({ get: route('GET'), post: route('POST'), put: route('PUT'), delete: route('DELETE') }),
      emit: (event, payload) => connection.send({ type: 'emit', event: String(event), payload: payload ?? null }),
      on(event, listener) {
        if (event !== 'stop') throw new TypeError(`app.on: unknown event ${JSON.stringify(event)}`)
        stopListeners.push(listener)
      },
    }),

    async stop() {
      for (const listener of stopListeners) await listener()
    },

    answer({ method, path, query, body }) {
      const segments = segmentsOf(path)
      for (const row of routes) {
        const params = row.method === method ? match(row.segments, segments) : undefined
        if (params !== undefined) return row.handler({ params, query, body })
      }
      throw new ApiError(`This app has no ${method} ${path}`)
    },
  }
}

const segmentsOf = (path) => String(path).split('/').filter(Boolean)

function match(pattern, segments) {
  if (pattern.length !== segments.length) return undefined
  const params = {}
  for (const [index, segment] of pattern.entries()) {
    if (segment.startsWith(':')) params[segment.slice(1)] = decoded(segments[index])
    else if (segment !== decoded(segments[index])) return undefined
  }
  return params
}

function decoded(segment) {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}
