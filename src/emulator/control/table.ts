/** What a hub can be told over its control port: how to misbehave, and what it remembers. One row per endpoint. */
import * as v from 'valibot'
import { checked, described, type Input, type Method, NONE, optional } from '../core/endpoint.ts'
import type { EmulatedHub } from '../hub.ts'
import { HubError } from '../hub-error.ts'
import { BEHAVIOURS, isBehaviour } from '../misbehaviour.ts'

interface Declared {
  readonly doc: string
  readonly method: Method
  readonly path: string
  readonly input: Input
}

export interface ControlRow extends Declared {
  /** `args` are the parameters of the path, and the body where there is one. @throws HubError */
  perform(hub: EmulatedHub, args: Readonly<Record<string, unknown>>): unknown
}

interface Row<I extends Input> extends Declared {
  readonly input: I
  run(hub: EmulatedHub, input: v.InferOutput<I>): unknown
}

function row<const I extends Input>({ run, ...declared }: Row<I>): ControlRow {
  return { ...declared, perform: (hub, args) => run(hub, checked(declared.input, args)) }
}

const NAME = { name: described(v.string(), 'The name of the behaviour.') }
const OPTIONS = { options: described(v.record(v.string(), v.unknown()), 'What the behaviour takes; the whole body.') }
const whole = v.pipe(v.number(), v.integer(), v.minValue(0))

function known(name: string) {
  if (isBehaviour(name)) return name
  throw new HubError(404, 'not_found', `There is no behaviour ${name}`)
}

/** Sets a behaviour with options that came from outside. @throws HubError 400 */
function behave(hub: EmulatedHub, name: string, options: unknown): void {
  const parsed = v.safeParse(BEHAVIOURS[known(name)].options, options)
  if (!parsed.success) {
    const [issue] = parsed.issues
    throw new HubError(400, 'invalid_parameter', `${v.getDotPath(issue) ?? 'the options'}: ${issue.message}`)
  }
  hub.behave(known(name), parsed.output)
}

export const CONTROL: readonly ControlRow[] = [
  row({
    doc: 'The behaviours that are set, and how often each will still happen.',
    method: 'GET',
    path: '/behaviours',
    input: NONE,
    run: (hub) => hub.behaviours,
  }),
  row({
    doc: 'Sets a behaviour. The body has its options, as below.',
    method: 'PUT',
    path: '/behaviours/:name',
    input: v.object({ ...NAME, ...OPTIONS }),
    run: (hub, { name, options }) => behave(hub, name, options),
  }),
  row({
    doc: 'Clears a behaviour in all its variants.',
    method: 'DELETE',
    path: '/behaviours/:name',
    input: v.object(NAME),
    run: (hub, { name }) => hub.behave(known(name), false),
  }),
  row({
    doc: 'Clears every behaviour.',
    method: 'DELETE',
    path: '/behaviours',
    input: NONE,
    run: (hub) => hub.behaveWell(),
  }),
  row({
    doc: 'The latest requests to the hub, oldest first, without keys.',
    method: 'GET',
    path: '/requests',
    input: NONE,
    run: (hub) => hub.requests.map(({ key: _, ...request }) => request),
  }),
  row({
    doc: 'Clears the list of requests.',
    method: 'DELETE',
    path: '/requests',
    input: NONE,
    run: (hub) => hub.forgetRequests(),
  }),
  row({
    doc: 'The latest spoken texts, oldest first.',
    method: 'GET',
    path: '/spoken',
    input: NONE,
    run: (hub) => hub.spoken,
  }),
  row({
    doc: 'Connections, realtime sessions, and the sessions that subscribe to the apps.',
    method: 'GET',
    path: '/connections',
    input: NONE,
    run: (hub) => hub.connections,
  }),
  row({
    doc: 'Makes an app crash. A simulated app crashes with the message.',
    method: 'POST',
    path: '/apps/:id/crash',
    input: v.object({
      id: described(v.string(), 'The id of the app.'),
      message: optional(v.string(), 'The message of the crash.'),
    }),
    run: (hub, { id, message }) => {
      if (!hub.apps.has(id)) throw new HubError(404, 'not_found', 'App Not Found')
      return hub.provokeCrash(id, message)
    },
  }),
  row({
    doc: 'Ends every realtime session.',
    method: 'POST',
    path: '/realtime/drop',
    input: v.object({
      how: optional(
        v.picklist(['goodbye', 'cut']),
        '`goodbye`, the default, closes the sessions; `cut` drops the connections.',
      ),
    }),
    run: (hub, { how }) => hub.dropRealtime(how),
  }),
  row({
    doc: 'Reboots the hub, then answers.',
    method: 'POST',
    path: '/reboot',
    input: v.object({
      downMs: optional(v.pipe(whole, v.maxValue(3_600_000)), 'How long it is away, in milliseconds; default 0.'),
      version: optional(v.string(), 'The firmware that it comes back with.'),
      id: optional(v.string(), 'The id that it comes back with.'),
    }),
    run: (hub, options) => hub.reboot(options),
  }),
]
