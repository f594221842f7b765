/** Collects the measured values: one value per round for each program and metric. */
import { median } from './stats.ts'
import type { SubjectName } from './subject.ts'

export type Metric =
  | 'eventP50'
  | 'eventP99'
  | 'eventCpuUs'
  | 'steadyCpuUs'
  | 'viewedCpuUs'
  | 'burstMs'
  | 'burstCpuUs'
  | 'eventfulCpuUs'
  | 'commandP50'
  | 'commandP99'
  | 'commandsPerSecond'
  | 'commandCpuUs'
  | 'oneCoreEventP50'
  | 'oneCoreCommandP50'
  | 'oneCoreCommandCpuUs'
  | 'start50Ms'
  | 'wholeStart50Ms'
  | 'start1000Ms'
  | 'idleRss'
  | 'addedRss'
  | 'appRss'
  | 'hubRss'
  | 'restartState'
  | 'restartDiscovery'
  | 'idleCpuShare'

export class Book {
  readonly #values = new Map<string, number[]>()

  add(subject: SubjectName, metric: Metric, value: number): void {
    const key = `${subject} ${metric}`
    this.#values.set(key, [...this.of(subject, metric), value])
  }

  of(subject: SubjectName, metric: Metric): readonly number[] {
    return this.#values.get(`${subject} ${metric}`) ?? []
  }

  median(subject: SubjectName, metric: Metric): number {
    return median(this.of(subject, metric))
  }
}
