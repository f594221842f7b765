/** Sends the answers to commands, logs commands that may change something, and limits the logged refusals. */
import { type AnswerHead, type Outcome, renderAnswer } from '../contract/answer.ts'
import { isAudited } from '../contract/commands.ts'
import { CommandError, type ErrorCode } from '../contract/errors.ts'
import { commandKey } from '../contract/permissions.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Message, SendOptions } from '../mqtt/types.ts'
import type { DispatcherOptions, Request } from './requests.ts'

/** Maximum size of the correlation data in the answer `too_large`, in bytes. Longer data is omitted. */
const MAX_ECHO_BYTES = 256

/** Maximum number of refusals that are logged per minute. Each app and hub has its own limit. */
const REFUSALS_A_MINUTE = 60
const MINUTE_MS = 60_000

const NOTHING: Outcome = { ok: true, json: 'null' }

export class Answers {
  readonly #options: DispatcherOptions
  /** Number of refusals by app and hub. Unknown apps and hubs share one count, because clients can invent names. */
  readonly #refused = new Map<string, number>()
  #endMinute: () => void = () => {}

  constructor(options: DispatcherOptions) {
    this.#options = options
  }

  /** Logs the number of refusals that were not logged individually. */
  stop(): void {
    this.#endMinute()
    const unlogged = this.#refused.values().reduce((sum, count) => sum + Math.max(0, count - REFUSALS_A_MINUTE), 0)
    const text = 'more commands were refused within a minute than are logged individually'
    if (unlogged > 0) this.#options.audit.warn({ refused: unlogged }, text)
    this.#refused.clear()
  }

  give(request: Request, outcome: Outcome): void {
    const { clock, states, handlers, audit, log } = this.#options
    const { message, requester, topic, command: row, endpoint, transaction, replayed, writeSent } = request
    const { command, hub, app = null, result } = topic
    const ms = clock.elapsed() - message.receivedAt
    const duration_ms = Math.round(ms)
    const head = { command, hub, app, transaction, duration_ms, ...(replayed && { replayed }) }
    const code: 'ok' | ErrorCode = outcome.ok ? 'ok' : outcome.error.code
    const summarized = outcome.ok ? NOTHING : outcome
    const summary = () => renderAnswer(head, summarized)
    handlers.onAnswer?.({
      command: row === undefined ? 'unknown' : commandKey(row),
      outcome: code,
      ms,
      result,
      summary,
    })
    if (requester === undefined) this.#send(request, outcome, head)
    else requester.reply({ outcome, payload: renderAnswer(head, outcome) })
    const line = {
      ...head,
      outcome: code,
      replayed,
      ...(requester !== undefined && { by: requester.by }),
      ...(endpoint !== undefined && { endpoint: nameOf(endpoint) }),
    }
    if (!isAudited(row)) log.debug(line, 'command')
    else if (outcome.ok || writeSent || this.#mayLog(topic)) audit.info(line, 'command')
    else return
    if (outcome.ok || replayed || row === undefined || row.target === 'bridge' || !row.write) return
    states.get(hub ?? '')?.onFailedWrite({ app, command, code: outcome.error.code, transaction })
  }

  #mayLog({ hub, app = null }: Request['topic']): boolean {
    if (this.#refused.size === 0) this.#endMinute = this.#options.clock.after(MINUTE_MS, () => this.stop())
    const known = hub === null ? undefined : this.#options.hubs.get(hub)
    const key = known !== undefined && (app === null || known.hub.apps.all.has(app)) ? `${hub}/${app ?? ''}` : ''
    const count = (this.#refused.get(key) ?? 0) + 1
    this.#refused.set(key, count)
    return count <= REFUSALS_A_MINUTE
  }

  #send({ message, topic }: Request, outcome: Outcome, head: AnswerHead): void {
    const { topics, live, link } = this.#options
    const { responseTopic, correlationData } = message
    const { discovery, commands } = live.value
    const isPermitted =
      responseTopic !== undefined && topics.mayAnswerOn(responseTopic, discovery.prefix, commands.response_topics)
    const to = isPermitted ? responseTopic : topic.result
    const as = (result: Outcome, mark: Message['correlationData']) => ({
      payload: renderAnswer(head, result),
      options: {
        isAnswer: true,
        correlationData: mark,
        contentType: 'application/json',
        userProperties: result.ok ? undefined : { 'error-code': result.error.code },
      },
    })
    const { payload, options } = as(outcome, correlationData)
    const ifRefused: SendOptions['ifRefused'] = (why) => {
      if (why !== 'too_large')
        return to === topic.result ? undefined : { ...as(outcome, correlationData), topic: topic.result }
      const error = new CommandError('too_large')
      // Omit long correlation data, because it may be what makes the answer too large.
      return as({ ok: false, error }, (correlationData?.length ?? 0) > MAX_ECHO_BYTES ? undefined : correlationData)
    }
    link.send(to, payload, { ...options, ifRefused })
  }
}

function nameOf({ method, section, item, path }: Endpoint): string {
  return `${method} ${section}/${item}${path}`
}
