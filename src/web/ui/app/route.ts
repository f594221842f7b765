/** The current view is stored in the fragment of the page's address, which browsers never send to a server. */
import { signal } from '@preact/signals'

const VIEWS = ['apps', 'activity', 'bridge', 'log'] as const

export type Route =
  | { readonly at: (typeof VIEWS)[number] }
  | { readonly at: 'app'; readonly hub: string; readonly app: string }

export const route = signal<Route>(read())
/** The parameters after the `?` in the fragment: the user's choices in the current view. */
const query = signal(readQuery())

/** How far the list of apps was scrolled when the user left it. */
export const listTop = signal(0)

addEventListener('hashchange', () => {
  query.value = readQuery()
  const to = read()
  // Keep the view if only the query has changed.
  if (hrefOf(to) === hrefOf(route.value)) return
  if (route.value.at === 'apps') listTop.value = scrollY
  route.value = to
  scrollTo(0, 0)
})

type How = 'pushState' | 'replaceState'

/**
 * A choice in the current view, stored in the address. @param how `pushState` adds entries to the browser's history
 * @param read returns the stored choice, or `first` if it is missing or invalid
 */
export function inAddress<T extends string>(name: string, how: How, first: T, read: (stored: string | null) => T) {
  return {
    get value() {
      return read(query.value.get(name))
    },
    set value(value: T) {
      const next = new URLSearchParams(query.value)
      if (value === first) next.delete(name)
      else next.set(name, value)
      query.value = next
      try {
        history[how](null, '', hrefOf(route.value) + (next.size === 0 ? '' : `?${next}`))
      } catch {
        // Ignore the error of browsers that limit how often the address can change. A later change updates the address.
      }
    },
  }
}

export function hrefOf(to: Route): string {
  if (to.at === 'apps') return '#/'
  return to.at === 'app' ? `#/app/${encodeURIComponent(to.hub)}/${encodeURIComponent(to.app)}` : `#/${to.at}`
}

function readQuery(): URLSearchParams {
  return new URLSearchParams(location.hash.split('?').slice(1).join('?'))
}

function read(): Route {
  const [path = ''] = location.hash.split('?')
  const [, at, hub, app] = path.split('/')
  try {
    if (at === 'app' && hub && app) return { at, hub: decodeURIComponent(hub), app: decodeURIComponent(app) }
  } catch {
    // The page itself never creates such an address.
  }
  return { at: VIEWS.find((view) => view === at) ?? 'apps' }
}
