export type Protocol = '5' | '3.1.1'

export interface Credentials {
  readonly username?: string | undefined
  readonly password?: string | undefined
}

/** The content of a PEM file, or a function that is called for each connection, because certificates are renewed. */
export type Pem = string | Buffer | (() => Buffer)

/** How to connect to a broker. The same login and certificates apply to each address. */
export interface BrokerOptions extends Credentials {
  /** At least one address, the preferred first: `mqtt:`, `mqtts:`, or `ws:` and `wss:` with path and query. */
  readonly urls: readonly string[]
  /** `auto` (default) tries the version that worked last, then the other version; initially 5, then 3.1.1. */
  readonly protocol?: 'auto' | Protocol | undefined
  /** Only for `mqtts:` and `wss:`. */
  readonly ca?: Pem | undefined
  readonly cert?: Pem | undefined
  readonly key?: Pem | undefined
  /** Whether the broker's certificate must be valid; default: `true`. */
  readonly rejectUnauthorized?: boolean | undefined
  /** The keep-alive interval, which is rounded to seconds; default: 30,000 ms. */
  readonly keepaliveMs?: number | undefined
  /** How long to wait for CONNACK; default: 10,000 ms. */
  readonly connectTimeoutMs?: number | undefined
}

interface PublishObserver {
  held(topic: string, payload: string | null): void
  released(isOthers: (topic: string) => boolean): void
  /** Called for each event that the link sends, but not for answers. */
  sent(topic: string, payload: string): void
}

/** Masks parts of a payload that must not be published. */
export type Redact = (payload: string) => string

export interface LinkOptions extends BrokerOptions {
  /** Called after a refused login. If the result differs from the refused credentials, it is used immediately. */
  readonly credentials?: (() => Credentials | Promise<Credentials>) | undefined
  /** Must stay the same across restarts, so that the broker ends a half-open connection of the previous process. */
  readonly clientId: string
  /** Contains `online` once all preceding messages are acknowledged; `offline` after `close`, and as the will. */
  readonly stateTopic: string
  /** A topic of this link for the self-test on each connection; nothing is retained there. */
  readonly probeTopic: string
  /** Filters of commands; their messages go to `onMessage`. */
  readonly subscriptions: readonly string[]
  /** One of `subscriptions`, a topic whose messages do not wait behind commands (default: none). */
  readonly urgentTopic?: string | undefined
  /** Filters of the topics that `hold` writes, to read them back. They must not overlap `subscriptions`. */
  readonly retainedFilters: readonly string[]
  /** The `retainedFilters` that stay subscribed. Publishes by other clients on these are passed to `onTouched`. */
  readonly watchedFilters?: readonly string[] | undefined
  /**
   * Filters of topics on which nothing may be retained; may include `probeTopic` and some of `subscriptions`. Retained
   * messages there are passed to `onTouched` instead of `onMessage`, if the protocol identifies them.
   */
  readonly transientFilters?: readonly string[] | undefined
  /**
   * Called before each publish, except for the state topic and answers. If it returns `false`, an event is lost, and a
   * retained topic waits until `release` or the next `hold`.
   */
  readonly mayPublish?: ((topic: string) => boolean) | undefined
  /** Applied to a payload before it is compared, digested or sent (default: none). */
  readonly redact?: Redact | undefined
  /** Whether `online` waits until the broker holds the topic's current payload (default: for all topics). */
  readonly delaysOnline?: ((topic: string) => boolean) | undefined
  /** Whether to clear the topic if its current payload is too large for the broker (default: for none). */
  readonly clearIfTooLarge?: ((topic: string) => boolean) | undefined
  /** Maximum size of a packet in bytes; default: learned from the broker's announcement and refusals. */
  readonly maximumPacketSize?: number | undefined
  /** The maximum number of unacknowledged publishes; default: 32, or the broker's limit if it is lower. */
  readonly window?: number | undefined
  /** How long to wait for a PUBACK or SUBACK before the connection is considered dead (default: 30,000 ms). */
  readonly ackTimeoutMs?: number | undefined
  /** The approximate interval between tests of the preferred address while another is in use (default: 5 minutes). */
  readonly preferredAfterMs?: number | undefined
  /**
   * The time limit of the self-test (default: 30,000 ms). A slow broker may acknowledge immediately and send its
   * retained messages later; the bridge must not overwrite messages that it has not read.
   */
  readonly probeTimeoutMs?: number | undefined
}

export interface Message {
  readonly topic: string
  readonly payload: Buffer
  /** MQTT 5: the publisher's flag. MQTT 3.1.1: whether the message was stored before the subscription. */
  readonly retain: boolean
  readonly dup: boolean
  readonly qos: 0 | 1 | 2
  readonly responseTopic?: string
  readonly correlationData?: Buffer
  /** The remaining Message Expiry Interval of MQTT 5, in milliseconds from `receivedAt`. */
  readonly expiresInMs?: number
  /** The earliest time at which the message may have arrived, in `clock.elapsed()` milliseconds. */
  readonly receivedAt: number
  /** The connection's number, from 1; `link.isCurrent` checks whether the connection is still up. */
  readonly connection: number
}

export interface Replacement {
  /** The topic of the replacement; default: the topic of the refused message. */
  readonly topic?: string
  readonly payload: string
  readonly options?: SendOptions
}

export interface SendOptions {
  /** Set for answers. In their separate queue, topics take turns, so that no requester can delay the others. */
  readonly isAnswer?: boolean | undefined
  /** Called if the broker does not accept the message. Without a replacement, the message is lost. */
  readonly ifRefused?: ((why: 'too_large' | 'denied') => Replacement | undefined) | undefined
  /** Called when the broker has acknowledged the message, even if it refuses it. */
  readonly onAcknowledged?: (() => void) | undefined
  /** MQTT 5 only, like the properties below; ignored under 3.1.1. */
  readonly correlationData?: Buffer | undefined
  readonly userProperties?: Record<string, string | string[]> | undefined
  readonly contentType?: string | undefined
}

/**
 * `closed` means that the other side closed the connection without a reason, `reset` that the connection broke, and
 * `unsuitable` that the broker lacks an MQTT feature that the bridge needs.
 */
export type FailureCode =
  | 'unauthorized'
  | 'unreachable'
  | 'refused'
  | 'protocol'
  | 'tls'
  | 'unsuitable'
  | 'taken_over'
  | 'timeout'
  | 'closed'
  | 'reset'

export interface LinkStatus {
  /** `connected` means subscribed and read back, `waiting` that the next attempt is scheduled. */
  readonly state: 'connecting' | 'connected' | 'waiting' | 'stopped'
  readonly protocol: Protocol | null
  readonly reason?: FailureCode
  readonly deniedFilters: readonly string[]
  /** Number of retained topics that the broker or the protocol refuses. */
  readonly deniedTopics: number
  /** Whether this link's publishes can be read back; `denied` points to the broker's ACL. */
  readonly probe: 'ok' | 'denied' | 'unknown'
  readonly queued: number
  readonly unacknowledged: number
  /** Number of accepted connections that were lost. */
  readonly reconnects: number
  /** Number of publishes so far, acknowledged or not. */
  readonly publishes: number
  /** Number of payload bytes in these publishes. */
  readonly bytes: number
  /** Number of events, answers and commands dropped because of a limit, their age, or the broker's refusal. */
  readonly dropped: number
}

export interface LinkHandlers {
  readonly observer?: PublishObserver | undefined
  /** The message is acknowledged when the handler returns, or earlier if the message had to wait in a queue. */
  readonly onMessage?: (message: Message) => void
  /** Called before the link subscribes. */
  readonly onAccepted?: () => void
  /** Called after the read-back. Messages that are held or swept here precede `online`. */
  readonly onConnected?: (status: LinkStatus) => void
  readonly onStatus?: ((status: LinkStatus) => void) | undefined
  /**
   * Receives each retained message of the read-back, and `online` on the state topic if another client publishes it
   * meanwhile. Returns additional filters to read, such as those of earlier discovery prefixes.
   */
  readonly onReadBack?: (topic: string, payload: string) => readonly string[]
  /** Called before the link ends a connection on purpose, without `offline`, if the connection is still up. */
  readonly onStartOver?: () => void
  /** Returns whether a command is running, so that the link should stay at its current address. Default: never. */
  readonly isBusy?: () => boolean
  /**
   * Called when another client publishes a different message on one of `watchedFilters`, retained or not; '' for a
   * cleared topic. `refresh` restores a held topic; `sweep` can clear a topic that is not held.
   */
  readonly onTouched?: (topic: string, payload: string) => void
}
