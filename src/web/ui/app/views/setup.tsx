import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Setup, SetupBroker, SetupDone, SetupHub, SetupTest } from '../../../server/api/protocol.ts'
import { api, type Result } from '../api.ts'
import { Action, Alert, Card, Copy, Json, set, useRequest } from '../parts/controls.tsx'
import { Glyph } from '../parts/icons.tsx'
import { open, openAfterSetup } from '../session.ts'
import { defineStrings, terms } from '../terms.ts'

const text = defineStrings('setup', {
  title: 'Set up hub2mqtt',
  intro: 'No hub is configured yet. You need the address of your hub, an API key and a broker.',
  incomplete: 'Some fields are still empty.',
  hub: {
    title: 'Your hub',
    found: 'Found in your network:',
    searching: 'Looking for hubs in your network…',
    url: 'Address of the hub',
    key: 'API key',
    keyHint: 'homey.app permits everything with apps; homey.app.readonly only permits watching them.',
    keyLink: 'Create a key: my.homey.app, Settings, API Keys',
    keyElsewhere: '(owner only). If the hub creates its own keys, create one in its settings: Developer, API Keys.',
    name: 'Name',
    nameHint: 'Part of every topic: 1 to 32 characters of a-z, 0-9, _ and -.',
    test: 'Test the hub',
  },
  broker: {
    embedded: 'Use the built-in broker (for this machine only)',
    existing: 'Use an existing broker',
    url: 'Address of the broker',
    username: 'User name',
    test: 'Test the broker',
  },
  finish: {
    title: 'Finish',
    path: 'Writes {path} and starts immediately.',
    noPath: 'hub2mqtt cannot write the configuration. It shows you the lines to add.',
    apply: 'Save and start',
  },
  done: {
    title: 'Done',
    written: 'Written to {path}',
    open: 'Go to the apps',
    almost: 'Almost done',
    lines: 'Add these lines to your configuration, and fill in the key and the password',
    restart: 'Then restart hub2mqtt. This page waits for it.',
    copy: 'Copy the lines',
  },
})

const KEYS_URL = 'https://my.homey.app'

export function SetupPage() {
  const setup = useSignal<Result<Setup> | undefined>(undefined)
  const hub = useSignal<SetupHub>({ name: 'home', url: '', api_key: '' })
  const broker = useSignal<SetupBroker>({ url: null, username: null, password: null })
  const done = useRequest<Result<SetupDone>>()
  useEffect(() => {
    void api.setup().then((result) => {
      setup.value = result
      if (result.ok && /^\w+:\/\//.test(result.value.broker)) {
        broker.value = { ...broker.value, url: result.value.broker }
      }
    })
  }, [])
  const ended = done.result.value
  if (ended?.ok) return <Done done={ended.value} />
  const answer = setup.value
  const start = answer?.ok ? answer.value : undefined
  const isComplete = Object.values(hub.value).every((value) => value !== '')
  const incomplete = isComplete ? undefined : text.incomplete
  return (
    <main class="setup">
      <h1>
        <Glyph name="hub" size={28} /> {text.title}
      </h1>
      <p class="quiet">{text.intro}</p>
      {answer?.ok === false && <Alert>{answer.message}</Alert>}
      <HubForm hub={hub} found={answer === undefined ? undefined : (start?.found ?? [])} />
      {start !== undefined && <BrokerForm broker={broker} />}
      <Card title={text.finish.title} wide>
        {start !== undefined && (
          <p>{start.path === null ? text.finish.noPath : text.finish.path({ path: start.path })}</p>
        )}
        <p class="bad-text" role="alert">
          {ended?.message}
        </p>
        <Action
          label={text.finish.apply}
          tone="primary"
          busy={done.busy.value}
          // Until the configured broker is known, saving would replace it with the built-in broker.
          refused={answer?.ok ? incomplete : (answer?.message ?? text.hub.searching)}
          act={() => void done.run(() => api.applySetup({ hub: withScheme(hub.value), broker: broker.value }))}
        />
      </Card>
    </main>
  )
}

function withScheme(hub: SetupHub): SetupHub {
  return hub.url.includes('://') ? hub : { ...hub, url: `http://${hub.url.trim()}` }
}

interface FieldProps<T> {
  readonly form: Signal<T>
  readonly name: keyof T
  readonly label: string
  readonly hint?: string
  readonly type?: 'text' | 'password' | 'url'
  readonly placeholder?: string
  /** The value to send if the field is empty; default: an empty string. */
  readonly empty?: '' | null
}

function Field<T extends SetupHub | SetupBroker>(props: FieldProps<T>) {
  const { form, name, label, hint, type = 'text', placeholder, empty = '' } = props
  return (
    <label class="field">
      <span>{label}</span>
      <input
        {...(type === 'password' ? { type: 'password' } : { type: 'text', inputMode: type })}
        value={String(form.value[name] ?? '')}
        placeholder={placeholder}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={({ currentTarget }) => set(form, { ...form.value, [name]: currentTarget.value || empty })}
      />
      {hint !== undefined && <small>{hint}</small>}
    </label>
  )
}

function HubForm({ hub, found }: { readonly hub: Signal<SetupHub>; readonly found: Setup['found'] | undefined }) {
  const { url, api_key } = hub.value
  return (
    <Card title={text.hub.title} wide>
      {found === undefined && <p class="quiet">{text.hub.searching}</p>}
      {found !== undefined && found.length > 0 && (
        <fieldset class="buttons">
          <legend class="quiet">{text.hub.found}</legend>
          {found.map((one) => (
            <button
              key={one.url}
              type="button"
              aria-pressed={one.url === url}
              onClick={() => set(hub, { ...hub.value, url: one.url })}
            >
              {one.name} <small>{one.url}</small>
            </button>
          ))}
        </fieldset>
      )}
      <Field form={hub} name="url" label={text.hub.url} type="url" placeholder="http://192.168.1.20" />
      <Field form={hub} name="api_key" label={text.hub.key} type="password" hint={text.hub.keyHint} />
      <p>
        <a href={KEYS_URL} target="_blank" rel="noreferrer noopener">
          {text.hub.keyLink}
        </a>{' '}
        {text.hub.keyElsewhere}
      </p>
      <Field form={hub} name="name" label={text.hub.name} hint={text.hub.nameHint} />
      <Test
        key={`${url} ${api_key}`}
        label={text.hub.test}
        ready={url !== '' && api_key !== ''}
        test={() => api.testHub(withScheme(hub.value))}
      />
    </Card>
  )
}

function BrokerForm({ broker }: { readonly broker: Signal<SetupBroker> }) {
  const { url, username, password } = broker.value
  const choices = [
    { label: text.broker.embedded, address: null },
    { label: text.broker.existing, address: url ?? 'mqtt://' },
  ]
  return (
    <Card title={terms.broker} wide>
      <fieldset class="field">
        <legend class="hidden">{terms.broker}</legend>
        {choices.map(({ label, address }) => (
          <label key={label} class="check">
            <input
              type="radio"
              name="broker"
              checked={url === address}
              onChange={() => set(broker, { ...broker.value, url: address })}
            />
            {label}
          </label>
        ))}
      </fieldset>
      {url !== null && (
        <>
          <Field form={broker} name="url" label={text.broker.url} />
          <Field form={broker} name="username" label={text.broker.username} empty={null} />
          <Field form={broker} name="password" label={terms.password} type="password" empty={null} />
        </>
      )}
      <Test
        key={`${url} ${username} ${password}`}
        label={text.broker.test}
        ready={url !== 'mqtt://'}
        test={() => api.testBroker(broker.value)}
      />
    </Card>
  )
}

/** A test and its result. Its `key` must contain the tested values, because the result is valid only for them. */
function Test({ label, ready, test }: { label: string; ready: boolean; test: () => Promise<Result<SetupTest>> }) {
  const { busy, result, run } = useRequest<Result<SetupTest>>()
  const ended = result.value?.ok ? result.value.value : result.value
  return (
    <div class="buttons">
      <Action
        label={label}
        busy={busy.value}
        refused={ready ? undefined : text.incomplete}
        act={() => void run(test)}
      />
      <p role="status" class={ended?.ok === false ? 'said bad-text' : 'said ok-text'}>
        {ended?.message}
      </p>
    </div>
  )
}

function Done({ done: { written, lines } }: { readonly done: SetupDone }) {
  const title = written === null ? text.done.lines : text.done.written({ path: written })
  useEffect(() => {
    if (written === null) void openAfterSetup()
  }, [])
  return (
    <main class="setup">
      <h1>{written === null ? text.done.almost : text.done.title}</h1>
      <Card title={title} wide aside={<Copy text={lines} label={text.done.copy} />}>
        <Json value={lines} />
        {written === null ? (
          <p>{text.done.restart}</p>
        ) : (
          <Action label={text.done.open} tone="primary" act={() => void open()} />
        )}
      </Card>
    </main>
  )
}
