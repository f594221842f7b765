/** The last step of a command: its one answer goes to who asked, and the others hear how it ended. */
import { type AnswerHead, type Outcome, renderAnswer } from '../contract/answer.ts'
import { isAudited } from '../contract/commands.ts'
import { CommandError, type ErrorCode } from '../contract/errors.ts'
import { commandKey } from '../contract/permissions.ts'
import type { Endpoint } from '../hub/endpoints.ts'
import type { Message, SendOptions } from '../mqtt/types.ts'
import { Audit } from './audit.ts'
import type { DispatcherOptions, Request } from './requests.ts'

/** Bytes of correlation data that a short answer carries. */
const MAX_SHORT_MARK = 256

const NOTHING: Outcome = { ok: true, json: 'null' }

export class Answers {
  readonly #options: DispatcherOptions
  readonly #audit: Audit

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#audit = new Audit(options.clock, options.audit)
  }

  /** Tells what the audit has left out so far. */
  stop(): void {
    this.#audit.stop()
  }

  give(request: Request, outcome: Outcome): void {
    const { clock, hubs, log, onAnswer, onFailedWrite } = this.#options
    const { message, requester, topic, command: row, endpoint, transaction, replayed, asked } = request
    const { command, hub, app = null, result } = topic
    const ms = clock.elapsed() - message.receivedAt
    const duration_ms = Math.round(ms)
    const head = { command, hub, app, transaction, duration_ms, ...(replayed && { replayed }) }
    const code: 'ok' | ErrorCode = outcome.ok ? 'ok' : outcome.error.code
    const summarized = outcome.ok ? NOTHING : outcome
    const summary = () => renderAnswer(head, summarized)
    onAnswer?.({ command: row === undefined ? 'unknown' : commandKey(row), outcome: code, ms, result, summary })
    if (requester === undefined) this.#send(request, outcome, head)
    else requester.reply({ outcome, payload: renderAnswer(head, outcome) })
    const line = {
      ...{ command, hub, app, transaction, duration_ms, replayed },
      outcome: code,
      ...(requester !== undefined && { by: requester.by }),
      ...(endpoint !== undefined && { endpoint: nameOf(endpoint) }),
    }
    const told = isAudited(row) ? this.#audit.write(line, asked) : log.debug(line, 'command')
    if (!told || outcome.ok || replayed || row === undefined || row.target === 'bridge' || !row.write) return
    if (hub !== null && hubs.has(hub)) onFailedWrite({ hub, app, command, code: outcome.error.code, transaction })
  }

  #send({ message, topic }: Request, outcome: Outcome, head: AnswerHead): void {
    const { responseTopic, correlationData } = message
    const to = responseTopic !== undefined && this.#mayAnswerOn(responseTopic) ? responseTopic : topic.result
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
      // What the requester has sent along may be what is too large.
      return as({ ok: false, error }, (correlationData?.length ?? 0) > MAX_SHORT_MARK ? undefined : correlationData)
    }
    this.#options.link.send(to, payload, { ...options, ifRefused })
  }

  #mayAnswerOn(topic: string): boolean {
    const { topics, live } = this.#options
    const { discovery, commands } = live.value
    return topics.mayAnswerOn(topic, { discoveryPrefix: discovery.prefix, only: commands.response_topics })
  }
}

/** Without its query and body. */
function nameOf({ method, section, item, path }: Endpoint): string {
  return `${method} ${section}/${item}${path}`
}
