import { useEffect, useRef } from 'preact/hooks'
import { bulk, isInProgress } from '../actions.ts'
import { api, type Result } from '../api.ts'
import { choiceLabel, openChoices } from '../languages.ts'
import type { HubEntry, Store } from '../live/store.ts'
import { Action, IconButton, submits, useNow, useRequest } from '../parts/controls.tsx'
import { Glyph } from '../parts/icons.tsx'
import { Keys, showKeys } from '../parts/keys.tsx'
import { ConfirmDialog, confirm, MenuHost, Toasts } from '../parts/overlays.tsx'
import { whyAway } from '../parts/state.tsx'
import { nextTheme, theme } from '../preferences.ts'
import { hrefOf, listTop, type Route, route } from '../route.ts'
import { logout, open, stage, usePage } from '../session.ts'
import { defineStrings, PRODUCT, terms, textFor } from '../terms.ts'
import { Activity } from './activity.tsx'
import { AppPage } from './app/app.tsx'
import { Apps } from './apps/apps.tsx'
import { BulkProgress } from './apps/bulk.tsx'
import { BridgePage } from './bridge/bridge.tsx'
import { LogPage } from './bridge/log.tsx'
import { SetupPage } from './setup.tsx'

const text = defineStrings('shell', {
  skip: 'Skip to content',
  nav: 'Main',
  problems: { one: '{count} problem', other: '{count} problems' },
  live: { connecting: 'Connecting', live: 'Live', stale: 'Not live', away: 'Hub offline' },
  theme: 'Theme: {name}',
  themes: { auto: 'system', light: 'light', dark: 'dark' },
  logout: 'Log out',
  leave: 'An action on several apps is in progress. Logging out stops it.',
  stale: 'No connection to hub2mqtt. This page may be out of date.',
  closed: 'No live connection to hub2mqtt. At most 16 pages can be open, and a reverse proxy must forward WebSockets.',
  connecting: 'Connecting…',
  retryIn: 'Next try in {seconds} s.',
  retry: 'Try now',
  standby: 'Another hub2mqtt on the same base topic is active. This one is on standby and accepts no commands.',
  hubOffline: 'The hub {name} is offline {why}. States are unknown; figures are the last known ones.',
  hubsOffline: {
    one: '{count} hub is offline: {hubs}. States are unknown; figures are the last known ones.',
    other: '{count} hubs are offline: {hubs}. States are unknown; figures are the last known ones.',
  },
  hubWhy: '{hub} {why}',
  brokerOffline:
    'The bridge has no connection to the MQTT broker {why}. Nothing is published; this page still shows the hubs.',
  docs: 'Documentation',
  hint: 'This page is protected by a password.',
  action: 'Log in',
  wrong: 'The password is not correct.',
  forgotten: 'The browser has not kept the login. Allow cookies, or open this page in a tab of its own.',
})

export function Shell() {
  return (
    <>
      <Staged />
      <Toasts />
      <ConfirmDialog />
    </>
  )
}

function Staged() {
  const now = stage.value
  if (now.at === 'open') return <Open />
  if (now.at === 'setup') return <SetupPage />
  if (now.at === 'login') return <Login />
  if (now.at !== 'failed') return <p class="gate quiet">{terms.loading}</p>
  return (
    <main class="gate">
      <div class="card">
        <h1>{PRODUCT}</h1>
        <p role="alert">{now.message}</p>
      </div>
    </main>
  )
}

/** Focuses the heading of the new view; but if the user returns from an app to the list, focuses that app. */
function moveFocus(before: Route, now: Route): void {
  const isBack = before.at === 'app' && now.at === 'apps'
  if (isBack) scrollTo(0, listTop.value)
  // A long list renders the rows at the new position before the next frame.
  requestAnimationFrame(() => {
    const links = [...document.querySelectorAll<HTMLElement>('td.c-name a')]
    const heading = document.querySelector<HTMLElement>('h1')
    if (heading !== null) heading.tabIndex = -1
    const left = links.find((link) => link.getAttribute('href') === hrefOf(before))
    if (left === undefined) heading?.focus({ preventScroll: isBack })
    else left.focus()
  })
}

const VIEWS = [
  { at: 'apps', glyph: 'apps', view: Apps },
  { at: 'activity', glyph: 'activity', view: Activity },
  { at: 'bridge', glyph: 'bridge', view: BridgePage },
] as const

function Open() {
  const { store } = usePage()
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('#content')?.focus()}>
        {text.skip}
      </button>
      <Header />
      <Banners />
      <BulkProgress />
      <main id="content" tabIndex={-1}>
        {store.complete.value || route.value.at === 'app' ? <Routed /> : <p class="empty">{terms.loading}</p>}
        <MenuHost />
      </main>
      <Footer />
      <Keys />
    </>
  )
}

function Routed() {
  const { store } = usePage()
  const now = route.value
  const entry = now.at === 'app' ? store.app(now.hub, now.app) : undefined
  const title = now.at === 'app' ? (entry === undefined ? now.app : entry.name.value) : terms.views[now.at]
  useEffect(() => {
    document.title = `${title} – ${PRODUCT}`
  }, [title])
  const before = useRef(now)
  useEffect(() => {
    if (before.current !== now) moveFocus(before.current, now)
    before.current = now
  }, [now])
  if (now.at === 'app') return <AppPage hub={now.hub} id={now.app} />
  if (now.at === 'log') return <LogPage />
  const View = VIEWS.find(({ at }) => at === now.at)?.view ?? Apps
  return <View />
}

function Header() {
  const { session, store, channel } = usePage()
  const { at } = route.value
  const current = at === 'app' ? 'apps' : at === 'log' ? 'bridge' : at
  const problems = store.health.value?.problems.length ?? 0
  const live = channel.liveness.value === 'live' && store.away.value.length > 0 ? 'away' : channel.liveness.value
  return (
    <header class="top">
      <a class="brand" href={hrefOf({ at: 'apps' })}>
        <Glyph name="hub" size={22} /> <span>{PRODUCT}</span>
      </a>
      <nav aria-label={text.nav}>
        {VIEWS.map(({ at: to, glyph }) => (
          <a key={to} href={hrefOf({ at: to })} aria-current={current === to ? 'page' : undefined}>
            <Glyph name={glyph} />
            <span>{terms.views[to]}</span>
            {to === 'bridge' && problems > 0 && (
              <span class="dot">
                <span class="hidden">{text.problems({ count: problems })}</span>
              </span>
            )}
          </a>
        ))}
      </nav>
      <span class={live === 'live' ? 'live ok' : 'live'} role="status">
        <span class="dot" aria-hidden="true" />
        <span class="word">{text.live[live]}</span>
      </span>
      <IconButton label={text.theme({ name: text.themes[theme.value] })} glyph={theme.value} act={nextTheme} />
      <IconButton label={choiceLabel()} glyph="language" popup="menu" act={openChoices} />
      {session.login !== 'none' && session.access === 'full' && (
        <IconButton label={text.logout} glyph="logout" act={() => void leave()} />
      )}
    </header>
  )
}

async function leave(): Promise<void> {
  const question = { title: text.logout, text: text.leave, action: text.logout }
  if (isInProgress() && (await confirm(question)) === undefined) return
  bulk.value = undefined
  await logout()
}

declare const DOCS_URL: string
const DOCS: { readonly [At in Route['at']]?: string } = {
  app: 'mqtt.md',
  activity: 'mqtt.md#events',
  bridge: 'operations.md',
}

function Footer() {
  return (
    <footer class="foot">
      <a href={DOCS_URL + (DOCS[route.value.at] ?? 'http.md')} target="_blank" rel="noreferrer">
        {text.docs}
      </a>
      <Action label={terms.keys} act={showKeys} />
    </footer>
  )
}

/** A part of the health report's text for a bridge on standby. */
const STANDBY_MARK = 'stands by'

function Banners() {
  const { channel, session, store } = usePage()
  const isStandby = store.health.value?.problems.some((problem) => problem.includes(STANDBY_MARK)) ?? false
  const hasNoBroker = store.complete.value && store.bridgeState.value === 'offline'
  const reason = store.health.value?.mqtt.reason ?? undefined
  const why = whyAway(store.bridgeSince.value, reason && textFor(terms.brokerReasons, reason))
  return (
    <>
      {channel.liveness.value === 'stale' && <StaleBanner />}
      {hasNoBroker && <Banner text={text.brokerOffline({ why })} />}
      {store.away.value.length > 0 && <Banner text={whyHubs(store)} />}
      {isStandby && <Banner text={text.standby} />}
      {session.access !== 'full' && (
        <p class="banner info" role="status">
          {terms.readOnly} {session.access === 'local' && terms.howToWrite}
        </p>
      )}
    </>
  )
}

function Banner({ text: message }: { readonly text: string }) {
  return (
    <p class="banner warn" role="status">
      <Glyph name="alert" />
      <span>{message}</span>
    </p>
  )
}

/** Maximum number of hubs in a banner; the page of the bridge lists all hubs. */
const MAX_NAMED = 4

function whyHubs(store: Store): string {
  const away = store.away.value
  const whyOf = (hub: HubEntry) => whyAway(hub.since.value, store.reasonOf(hub))
  const [first] = away
  if (first !== undefined && store.own.value.length === 1)
    return text.hubOffline({ name: first.name, why: whyOf(first) })
  const hubs = away.slice(0, MAX_NAMED).map((hub) => text.hubWhy({ hub: hub.name, why: whyOf(hub) }))
  const more = away.length > MAX_NAMED ? [terms.more({ count: away.length - MAX_NAMED })] : []
  return text.hubsOffline({ count: away.length, hubs: [...hubs, ...more].join('; ') })
}

function StaleBanner() {
  const { channel, store } = usePage()
  const now = useNow()
  const at = channel.retryAt.value
  const seconds = at === undefined ? 0 : Math.max(0, Math.ceil((at - now.value) / 1000))
  return (
    <div class="banner warn" role="alert">
      <Glyph name="alert" />
      <span>
        {store.complete.value ? text.stale : text.closed}{' '}
        <span aria-hidden="true">{at === undefined ? text.connecting : text.retryIn({ seconds })}</span>
      </span>
      <Action label={text.retry} act={() => void channel.retryNow()} />
    </div>
  )
}

function Login() {
  const field = useRef<HTMLInputElement>(null)
  const { busy, result, run } = useRequest<Result<unknown>>()
  useEffect(() => {
    // A dialog belongs to the page behind the login, and would keep the focus.
    document.querySelector('dialog')?.close()
    field.current?.focus()
    // The user may have logged in from another tab.
    const wake = () => void (document.hidden || busy.value || open())
    document.addEventListener('visibilitychange', wake)
    return () => document.removeEventListener('visibilitychange', wake)
  }, [])
  const login = async () => {
    const { current } = field
    if (busy.value || current === null || current.value === '') return
    const { ok } = await run(async () => {
      const answer = await api.login(current.value)
      if (answer.ok) await open()
      return answer
    })
    if (!ok) current.select()
  }
  const ended = result.value
  return (
    <main class="gate">
      <form class="card" onSubmit={submits(login)}>
        <h1>
          <Glyph name="hub" size={26} /> {PRODUCT}
        </h1>
        <p class="quiet">{text.hint}</p>
        <input
          type="text"
          class="hidden"
          name="username"
          autocomplete="username"
          value={PRODUCT}
          readOnly
          tabIndex={-1}
          aria-hidden="true"
        />
        <label class="field">
          <span>{terms.password}</span>
          <input ref={field} type="password" name="password" autocomplete="current-password" required />
        </label>
        <p class="bad-text" role="alert">
          {/* After a successful login, this form is still shown only if the browser has not kept the cookie. */}
          {ended?.ok ? text.forgotten : ended?.status === 401 ? text.wrong : ended?.message}
        </p>
        <button type="submit" class="primary" disabled={busy.value}>
          {text.action}
        </button>
      </form>
    </main>
  )
}
