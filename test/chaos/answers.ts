import type { Seen } from '../support/observer.ts'

export interface Answer {
  readonly at: number
  readonly ok: boolean
  readonly code: string | undefined
  readonly replayed: boolean
  readonly text: string
}

export const isAnswer = (topic: string) => topic.startsWith('answers/') || /\/result(\/|$)/.test(topic)

export function tokenOf({ topic, packet, retain }: Seen): string | undefined {
  return retain || !isAnswer(topic) ? undefined : packet.properties?.correlationData?.toString()
}

export function parseAnswer(text: string): Pick<Answer, 'ok' | 'code' | 'replayed'> {
  const { ok, error, replayed }: { ok?: unknown; error?: { code?: unknown }; replayed?: unknown } = Object(parse(text))
  return {
    ok: ok === true,
    code: error?.code === undefined ? undefined : String(error.code),
    replayed: replayed === true,
  }
}

export function answersOf({ seen }: { readonly seen: readonly Seen[] }): Map<string, Answer[]> {
  const answers = new Map<string, Answer[]>()
  for (const one of seen) {
    const token = tokenOf(one)
    if (token === undefined) continue
    const list = answers.get(token) ?? []
    list.push({ at: one.at, text: one.text, ...parseAnswer(one.text) })
    answers.set(token, list)
  }
  return answers
}

export function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
