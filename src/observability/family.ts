/** What a metric family is: its name, help and type, and how its samples are read at a scrape. */

export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** For a histogram, whose samples have names of their own. */
  readonly metricName?: string
}

/** What is printed together under one name. */
export interface Family {
  readonly name: string
  readonly help: string
  readonly type: 'gauge' | 'counter' | 'histogram'
  /** Called at each scrape. */
  readonly read: () => Iterable<Sample>
}

export interface Metrics {
  /** All of them as OpenMetrics text. */
  print(): Promise<{ readonly contentType: string; readonly text: string }>
}
