/** The current view. It is stored after the `#` of the address, which is never sent to a server. */
import { signal } from '@preact/signals'

export type Route =
  | { readonly at: 'apps' }
  | { readonly at: 'app'; readonly hub: string; readonly app: string }
  | { readonly at: 'activity' }
  | { readonly at: 'bridge' }
  | { readonly at: 'log' }

export const route = signal<Route>(read())

addEventListener('hashchange', () => {
  route.value = read()
  scrollTo(0, 0)
})

export function hrefOf(to: Route): string {
  if (to.at === 'apps') return '#/'
  return to.at === 'app' ? `#/app/${encodeURIComponent(to.hub)}/${encodeURIComponent(to.app)}` : `#/${to.at}`
}

function read(): Route {
  const [, at, hub, app] = location.hash.split('/')
  if (at === 'activity' || at === 'bridge' || at === 'log') return { at }
  try {
    if (at === 'app' && hub && app) return { at, hub: decodeURIComponent(hub), app: decodeURIComponent(app) }
  } catch {
    // The address was not written by this page.
  }
  return { at: 'apps' }
}
