/** The words of the MQTT side: what a link is given, what it hands out, and how it tells of itself. */

export type Protocol = '5' | '3.1.1'

export interface Credentials {
  readonly username?: string | undefined
  readonly password?: string | undefined
}

/** Where a broker is, and how to connect to it. */
export interface BrokerOptions {
  /** `mqtt:`, `mqtts:`, `ws:` or `wss:`; a WebSocket URL's path and query are kept. */
  readonly url: string
  readonly username?: string | undefined
  readonly password?: string | undefined
  /** `auto` (default): 5, else 3.1.1; the version that worked last is tried first. */
  readonly protocol?: 'auto' | Protocol | undefined
  /** PEM text or bytes; only for `mqtts:` and `wss:`. */
  readonly ca?: string | Buffer | undefined
  readonly cert?: string | Buffer | undefined
  readonly key?: string | Buffer | undefined
  /** Default true. */
  readonly rejectUnauthorized?: boolean | undefined
  /** Default 30,000 ms; whole seconds reach the broker. */
  readonly keepaliveMs?: number | undefined
  /** How long a broker may take for CONNACK (default 10,000 ms). */
  readonly connectTimeoutMs?: number | undefined
}

export interface LinkOptions extends BrokerOptions {
  /** Called after a refused login. If they differ from the refused ones, they are tried at once. */
  readonly credentials?: (() => Credentials | Promise<Credentials>) | undefined
  /** Keep it the same over restarts: the broker then ends a half-open connection of the previous process. */
  readonly clientId: string
  /** Retained: `online` after all else is acknowledged, `offline` at a stop and as the will. */
  readonly stateTopic: string
  /** A topic of our own for the self-test at each connect; nothing is retained there. */
  readonly probeTopic: string
  /** Filters of commands; their messages go to `onMessage`. */
  readonly subscriptions: readonly string[]
  /** Filters of the retained topics that `hold` writes, to read back what the broker still has. They must not overlap `subscriptions`. */
  readonly heldFilters: readonly string[]
  /** Those of `heldFilters` that stay subscribed: what others do there goes to `onTouched`. */
  readonly watchedFilters?: readonly string[] | undefined
  /** Called with each retained message that is read back; names filters of an earlier time to read back as well. */
  readonly furtherFilters?: ((topic: string, payload: string) => readonly string[]) | undefined
  /** Publishes without acknowledgement at a time, at most (default 32; a broker that allows fewer is obeyed). */
  readonly window?: number | undefined
  /** How long a broker may take for a PUBACK or SUBACK before the connection counts as dead (default 30,000 ms). */
  readonly ackTimeoutMs?: number | undefined
  /** How long the self-test's marker may take to come back (default 10,000 ms). */
  readonly probeTimeoutMs?: number | undefined
}

/** A message that arrived on one of `subscriptions`. */
export interface Message {
  readonly topic: string
  readonly payload: Buffer
  /**
   * As the publisher set it under MQTT 5. Under 3.1.1 only true for a message that was stored before the subscription:
   * that protocol does not tell it of a live one.
   */
  readonly retain: boolean
  readonly dup: boolean
  readonly qos: 0 | 1 | 2
  readonly responseTopic?: string
  readonly correlationData?: Buffer
  /** What is left of MQTT 5's Message Expiry Interval, in milliseconds from `receivedAt`. */
  readonly expiresInMs?: number
  /** `clock.elapsed()` at arrival. */
  readonly receivedAt: number
  /** Counts connections from 1; `link.isCurrent` tells whether it is still up. */
  readonly connection: number
}

export interface SendOptions {
  /** MQTT 5 only, like all of these; dropped silently under 3.1.1. */
  readonly correlationData?: Buffer | undefined
  readonly userProperties?: Record<string, string | string[]> | undefined
  readonly contentType?: string | undefined
  /** Message Expiry Interval in whole seconds. */
  readonly expirySeconds?: number | undefined
}

/** Why a connection was refused or lost; `closed`: in good order but without a reason, `reset`: not in good order. */
export type FailureCode =
  | 'unauthorized'
  | 'unreachable'
  | 'refused'
  | 'protocol'
  | 'tls'
  | 'taken_over'
  | 'timeout'
  | 'closed'
  | 'reset'

export interface LinkStatus {
  /** `connected` means: subscribed and read back; `waiting`: the next attempt is scheduled. */
  readonly state: 'connecting' | 'connected' | 'waiting' | 'stopped'
  readonly protocol: Protocol | null
  /** Why the last connection failed, while there is none. */
  readonly reason?: FailureCode
  readonly deniedFilters: readonly string[]
  /** Retained topics that the broker or the protocol refuses at present. */
  readonly deniedTopics: number
  /** Whether what is published under the prefix can be read again; `denied` points to the broker's ACL. */
  readonly probe: 'ok' | 'denied' | 'unknown'
  /** Retained topics and messages waiting to be sent. */
  readonly queued: number
  readonly unacknowledged: number
  /** Connections lost so far. */
  readonly reconnects: number
  /** Acknowledged or not, since the start. */
  readonly publishes: number
  /** Payload bytes of those. */
  readonly bytes: number
  /** Events and answers lost to the outbox's limits. */
  readonly dropped: number
}

export interface LinkHandlers {
  /** A message for `subscriptions`; it is acknowledged as soon as this returns. */
  readonly onMessage?: (message: Message) => void
  /** Subscribed, and the broker's retained messages are known: a good moment to `hold` and `sweep`, before `online` is published. */
  readonly onConnected?: (status: LinkStatus) => void
  readonly onStatus?: (status: LinkStatus) => void
  /** Something was published live on one of `watchedFilters`; under MQTT 3.1.1 also by this link itself. */
  readonly onTouched?: (topic: string, payload: string) => void
}
