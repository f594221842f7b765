// The object `app` of the SDK, with the app's id, web API, events and `stop` listeners.

class ApiError extends Error {
  status = 404
  code = 'not_found'
}

export function createApp(id, version, connection) {
  const routes = []
  const endings = []

  const route = (method) => (path, handler) => {
    if (typeof handler !== 'function')
      throw new TypeError(`app.api.${method.toLowerCase()}: the handler is not a function`)
    routes.push({ method, steps: stepsOf(path), handler })
  }

  return {
    public: Object.freeze({
      id,
      version,
      api: Object.freeze({ get: route('GET'), post: route('POST'), put: route('PUT'), delete: route('DELETE') }),
      emit: (event, payload) => connection.send({ type: 'emit', event: String(event), payload: payload ?? null }),
      on(event, listener) {
        if (event !== 'stop') throw new TypeError(`app.on: unknown event ${JSON.stringify(event)}`)
        endings.push(listener)
      },
    }),

    async stop() {
      for (const ending of endings) await ending()
    },

    answer({ method, path, query, body }) {
      const steps = stepsOf(path)
      for (const row of routes) {
        const params = row.method === method ? match(row.steps, steps) : undefined
        if (params !== undefined) return row.handler({ params, query, body })
      }
      throw new ApiError(`This app has no ${method} ${path}`)
    },
  }
}

const stepsOf = (path) => String(path).split('/').filter(Boolean)

function match(pattern, steps) {
  if (pattern.length !== steps.length) return undefined
  const params = {}
  for (const [index, step] of pattern.entries()) {
    if (step.startsWith(':')) params[step.slice(1)] = decoded(steps[index])
    else if (step !== decoded(steps[index])) return undefined
  }
  return params
}

function decoded(step) {
  try {
    return decodeURIComponent(step)
  } catch {
    return step
  }
}
