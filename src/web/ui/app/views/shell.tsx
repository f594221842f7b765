/** The frame around all views. */
import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { bulk, type Door } from '../commands.ts'
import type { Store } from '../live/store.ts'
import { ConfirmDialog, confirm } from '../parts/confirm.tsx'
import { Glyph, type GlyphName } from '../parts/glyph.tsx'
import { MenuHost } from '../parts/menu.tsx'
import { Toasts } from '../parts/toasts.tsx'
import { hrefOf, type Route, route } from '../route.ts'
import { logout, type Stage, stage } from '../session.ts'
import { S } from '../strings.ts'
import { nextTheme, theme } from '../theme.ts'
import { Activity } from './activity.tsx'
import { AppPage } from './app/app.tsx'
import { Apps } from './apps/apps.tsx'
import { BridgePage } from './bridge/bridge.tsx'
import { Login } from './login.tsx'
import { SetupPage } from './setup.tsx'

export function Shell() {
  return (
    <>
      <View stage={stage.value} />
      <Toasts />
      <ConfirmDialog />
    </>
  )
}

function View({ stage: now }: { readonly stage: Stage }) {
  switch (now.at) {
    case 'opening':
      return <p class="gate quiet">{S.loading}</p>
    case 'failed':
      return (
        <main class="gate">
          <div class="card">
            <h1>{S.title}</h1>
            <p role="alert">{now.message}</p>
          </div>
        </main>
      )
    case 'login':
      return <Login />
    case 'setup':
      return <SetupPage />
    case 'open':
      return <Open door={now} />
  }
}

function Open({ door }: { readonly door: Door }) {
  const { at } = route.value
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>('#content')?.focus()}>
        {S.skip}
      </button>
      <Header door={door} />
      <Banners door={door} />
      <main id="content" tabIndex={-1}>
        {door.store.complete.value || at === 'app' ? <Routed door={door} /> : <p class="empty">{S.loading}</p>}
        <MenuHost />
      </main>
    </>
  )
}

function Routed({ door }: { readonly door: Door }) {
  const now = route.value
  useEffect(() => {
    document.title = `${titleOf(now)} – ${S.title}`
  }, [now])
  switch (now.at) {
    case 'apps':
      return <Apps door={door} />
    case 'app':
      return <AppPage door={door} hub={now.hub} id={now.app} />
    case 'activity':
      return <Activity door={door} />
    case 'bridge':
      return <BridgePage door={door} />
  }
}

function titleOf(now: Route): string {
  return now.at === 'app' ? now.app : S.nav[now.at]
}

const LINKS: readonly (readonly [Exclude<Route['at'], 'app'>, GlyphName])[] = [
  ['apps', 'apps'],
  ['activity', 'activity'],
  ['bridge', 'bridge'],
]

function Header({ door }: { readonly door: Door }) {
  const { at } = route.value
  const problems = useComputed(() => door.store.health.value?.problems.length ?? 0).value
  return (
    <header class="top">
      <a class="brand" href={hrefOf({ at: 'apps' })}>
        <Glyph name="hub" size={22} /> <span>{S.title}</span>
      </a>
      <nav aria-label={S.nav.label}>
        {LINKS.map(([to, glyph]) => (
          <a
            key={to}
            href={hrefOf({ at: to })}
            aria-current={at === to || (at === 'app' && to === 'apps') ? 'page' : undefined}
          >
            <Glyph name={glyph} />
            <span>{S.nav[to]}</span>
            {to === 'bridge' && problems > 0 && (
              <span class="dot">
                <span class="hidden">{S.bridge.problemCount(problems)}</span>
              </span>
            )}
          </a>
        ))}
      </nav>
      <div class="tools">
        <LiveSign door={door} />
        <button
          type="button"
          class="icon"
          aria-label={S.theme(S.themes[theme.value])}
          title={S.theme(S.themes[theme.value])}
          onClick={nextTheme}
        >
          <Glyph name={theme.value} />
        </button>
        {door.session.login !== 'none' && door.session.access === 'full' && (
          <button type="button" class="icon" aria-label={S.login.out} title={S.login.out} onClick={() => void leave()}>
            <Glyph name="logout" />
          </button>
        )}
      </div>
    </header>
  )
}

async function leave(): Promise<void> {
  const isBusy = bulk.value?.state === 'running'
  if (isBusy && (await confirm({ title: S.login.out, text: S.bulk.leave, action: S.login.out })) === undefined) return
  await logout()
}

function LiveSign({ door: { channel, store } }: { readonly door: Door }) {
  const { value } = channel.liveness
  const now = value === 'live' && store.away.value.length > 0 ? 'away' : value
  return (
    <span class={`live ${now}`} role="status">
      <span class="lamp" aria-hidden="true" />
      <span class="word">{S.live[now]}</span>
    </span>
  )
}

function Banners({ door: { channel, session, store } }: { readonly door: Door }) {
  const isStandby = store.health.value?.problems.some((problem) => problem.includes(S.standbyMark)) ?? false
  return (
    <>
      {channel.liveness.value === 'stale' && <StaleBanner channel={channel} />}
      {store.complete.value && store.bridgeState.value === 'offline' && <BrokerBanner store={store} />}
      <AwayBanner store={store} />
      {isStandby && (
        <p class="banner" role="status">
          {S.standby}
        </p>
      )}
      {session.access !== 'full' && (
        <p class="banner info" role="status">
          {S.readOnly} {session.access === 'local' && S.howToWrite}
        </p>
      )}
    </>
  )
}

function BrokerBanner({ store }: { readonly store: Store }) {
  const reason = store.health.value?.mqtt.reason ?? ''
  return (
    <p class="banner" role="status">
      <Glyph name="alert" />
      <span>
        {S.away.broker} {S.away.why(S.broker.reasons[reason], store.bridgeSince.value)}. {S.away.unpublished}
      </span>
    </p>
  )
}

/** The page of the bridge lists all of them. */
const MOST_NAMED = 4

function AwayBanner({ store }: { readonly store: Store }) {
  const away = store.away.value
  if (away.length === 0) return null
  const whys = away.slice(0, MOST_NAMED).map((hub) => {
    const why = S.away.why(store.reasonOf(hub), hub.since.value)
    return store.own.value.length === 1 ? why : `${hub.name} ${why}`
  })
  const further = away.length - whys.length
  return (
    <p class="banner" role="status">
      <Glyph name="alert" />
      <span>
        {S.away.hubs(
          away.map(({ name }) => name),
          store.own.value.length,
        )}{' '}
        {whys.join('; ')}
        {further > 0 && S.away.further(further)}. {S.away.seen}
      </span>
    </p>
  )
}

function StaleBanner({ channel }: Pick<Door, 'channel'>) {
  const now = useSignal(Date.now())
  useEffect(() => {
    const timer = setInterval(() => {
      now.value = Date.now()
    }, 1_000)
    return () => clearInterval(timer)
  }, [])
  const at = channel.retryAt.value
  const seconds = at === undefined ? 0 : Math.max(0, Math.ceil((at - now.value) / 1000))
  return (
    <div class="banner" role="alert">
      <Glyph name="alert" />
      <span>
        {S.stale} <span aria-hidden="true">{at === undefined ? S.connecting : S.retryIn(seconds)}</span>
      </span>
      <button type="button" onClick={() => channel.retryNow()}>
        {S.retry}
      </button>
    </div>
  )
}
