/** The first run: which hub, which broker, and where that is written. */
import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Setup, SetupBroker, SetupDone, SetupHub, SetupTest } from '../../../server/api/protocol.ts'
import { api, type Result } from '../api.ts'
import { Glyph } from '../parts/glyph.tsx'
import { Action, Card, Copy, Json } from '../parts/small.tsx'
import { open } from '../session.ts'
import { S } from '../strings.ts'

export function SetupPage() {
  const setup = useSignal<Result<Setup> | undefined>(undefined)
  const hub = useSignal<SetupHub>({ name: 'home', url: '', api_key: '' })
  const broker = useSignal<SetupBroker>({ url: null, username: null, password: null })
  const done = useSignal<Result<SetupDone> | undefined>(undefined)
  useEffect(() => {
    void api.setup().then((result) => {
      setup.value = result
      if (result.ok && /^\w+:\/\//.test(result.value.broker)) {
        broker.value = { ...broker.value, url: result.value.broker }
      }
    })
  }, [])
  if (done.value?.ok) return <Done done={done.value.value} />
  return (
    <main class="setup">
      <h1>
        <Glyph name="hub" size={28} /> {S.setup.title}
      </h1>
      <p class="quiet">{S.setup.intro}</p>
      {setup.value?.ok === false && <p class="notice bad">{setup.value.message}</p>}
      <HubForm
        hub={hub}
        found={setup.value === undefined ? undefined : setup.value.ok ? setup.value.value.found : []}
      />
      <BrokerForm broker={broker} />
      <Finish
        hub={hub.value}
        broker={broker.value}
        path={setup.value?.ok ? setup.value.value.path : undefined}
        done={done}
      />
    </main>
  )
}

interface FieldProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly hint?: string
  readonly type?: 'text' | 'password' | 'url'
  readonly placeholder?: string
}

function Field({ label, value, onChange, hint, type = 'text', placeholder }: FieldProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        {...(type === 'password' ? { type: 'password' } : { type: 'text', inputMode: type })}
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      {hint !== undefined && <small>{hint}</small>}
    </label>
  )
}

function HubForm({ hub, found }: { readonly hub: Signal<SetupHub>; readonly found: Setup['found'] | undefined }) {
  const { name, url, api_key } = hub.value
  const set = (change: Partial<SetupHub>) => {
    hub.value = { ...hub.value, ...change }
  }
  return (
    <Card title={S.setup.hub} wide>
      {found === undefined && <p class="small quiet">{S.setup.searching}</p>}
      {found !== undefined && found.length > 0 && (
        <fieldset class="found">
          <legend class="quiet">{S.setup.found}</legend>
          {found.map((one) => (
            <button key={one.url} type="button" aria-pressed={one.url === url} onClick={() => set({ url: one.url })}>
              {one.name} <small>{one.url}</small>
            </button>
          ))}
        </fieldset>
      )}
      <Field
        label={S.setup.url}
        type="url"
        value={url}
        placeholder="http://192.168.1.20"
        onChange={(value) => set({ url: value })}
      />
      <Field
        label={S.setup.key}
        type="password"
        value={api_key}
        hint={S.setup.keyHint}
        onChange={(value) => set({ api_key: value })}
      />
      <p class="small">
        <a href={S.setup.keyAddress} target="_blank" rel="noreferrer noopener">
          {S.setup.keyLink}
        </a>{' '}
        {S.setup.keyElsewhere}
      </p>
      <Field label={S.setup.name} value={name} hint={S.setup.nameHint} onChange={(value) => set({ name: value })} />
      <Test label={S.setup.testHub} ready={url !== '' && api_key !== ''} test={() => api.testHub(hub.value)} />
    </Card>
  )
}

function BrokerForm({ broker }: { readonly broker: Signal<SetupBroker> }) {
  const { url, username, password } = broker.value
  const set = (change: Partial<SetupBroker>) => {
    broker.value = { ...broker.value, ...change }
  }
  const orNull = (value: string) => (value === '' ? null : value)
  return (
    <Card title={S.setup.broker} wide>
      <fieldset class="choice">
        <legend class="hidden">{S.setup.broker}</legend>
        <label class="check">
          <input type="radio" name="broker" checked={url === null} onChange={() => set({ url: null })} />
          {S.setup.embedded}
        </label>
        <label class="check">
          <input type="radio" name="broker" checked={url !== null} onChange={() => set({ url: url ?? 'mqtt://' })} />
          {S.setup.ownBroker}
        </label>
      </fieldset>
      {url !== null && (
        <>
          <Field label={S.setup.brokerUrl} value={url} onChange={(value) => set({ url: value })} />
          <Field
            label={S.setup.username}
            value={username ?? ''}
            onChange={(value) => set({ username: orNull(value) })}
          />
          <Field
            label={S.setup.password}
            type="password"
            value={password ?? ''}
            onChange={(value) => set({ password: orNull(value) })}
          />
        </>
      )}
      <Test label={S.setup.testBroker} ready={url !== 'mqtt://'} test={() => api.testBroker(broker.value)} />
    </Card>
  )
}

interface TestProps {
  readonly label: string
  readonly ready: boolean
  readonly test: () => Promise<Result<SetupTest>>
}

function Test({ label, ready, test }: TestProps) {
  const busy = useSignal(false)
  const result = useSignal<SetupTest | undefined>(undefined)
  const run = async () => {
    busy.value = true
    const ended = await test()
    result.value = ended.ok ? ended.value : { ok: false, message: ended.message }
    busy.value = false
  }
  return (
    <div class="test">
      <Action label={label} busy={busy.value} refused={ready ? undefined : S.setup.incomplete} act={() => void run()} />
      <p role="status" class={result.value?.ok === false ? 'bad-text' : 'ok-text'}>
        {result.value?.message}
      </p>
    </div>
  )
}

interface FinishProps {
  readonly hub: SetupHub
  readonly broker: SetupBroker
  /** `undefined`: not known yet. */
  readonly path: string | null | undefined
  readonly done: Signal<Result<SetupDone> | undefined>
}

function Finish({ hub, broker, path, done }: FinishProps) {
  const busy = useSignal(false)
  const apply = async () => {
    busy.value = true
    done.value = await api.applySetup({ hub, broker })
    busy.value = false
  }
  const isComplete = hub.name !== '' && hub.url !== '' && hub.api_key !== ''
  return (
    <Card title={S.setup.finish} wide>
      {path !== undefined && <p>{path === null ? S.setup.noPath : S.setup.path(path)}</p>}
      <p class="bad-text" role="alert">
        {done.value?.ok === false ? done.value.message : ''}
      </p>
      <Action
        label={S.setup.apply}
        tone="primary"
        busy={busy.value}
        refused={isComplete ? undefined : S.setup.incomplete}
        act={() => void apply()}
      />
    </Card>
  )
}

function Done({ done: { written, lines } }: { readonly done: SetupDone }) {
  return (
    <main class="setup">
      <h1>{written === null ? S.setup.almost : S.setup.done}</h1>
      <Card
        title={written === null ? S.setup.copyLines : S.setup.written(written)}
        wide
        aside={<Copy text={lines} label={S.setup.copy} />}
      >
        <Json value={lines} />
        {written === null ? (
          <p>{S.setup.restart}</p>
        ) : (
          <Action label={S.setup.open} tone="primary" act={() => void open()} />
        )}
      </Card>
    </main>
  )
}
