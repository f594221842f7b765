/** Collects the measured values: one value per round for each program and metric. */
import type { FIGURES } from './report.ts'
import type { SubjectName } from './subject.ts'

/** The metrics whose medians the report lists, and those that are only compared with a goal. */
export type Metric =
  | (typeof FIGURES)[number][1]
  | ('appRss' | 'hubRss' | 'restartState' | 'restartDiscovery' | 'idleCpuShare')

export class Book {
  readonly #values = new Map<string, number[]>()

  add(subject: SubjectName, metric: Metric, value: number): void {
    const key = `${subject} ${metric}`
    this.#values.set(key, [...this.of(subject, metric), value])
  }

  of(subject: SubjectName, metric: Metric): readonly number[] {
    return this.#values.get(`${subject} ${metric}`) ?? []
  }
}
