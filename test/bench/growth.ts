import { setTimeout as sleep } from 'node:timers/promises'
import { startBench } from './bench.ts'
import type { Book } from './book.ts'
import { burst, type Effort } from './measures.ts'

interface Size {
  /** The number of apps on each hub. */
  readonly apps: number
  readonly hubs: number
}

const THOUSAND: Size = { apps: 1000, hubs: 1 }
const MOST_APPS: Size = { apps: 5000, hubs: 1 }
const ONE_HUB: Size = { apps: 50, hubs: 1 }
const MOST_HUBS: Size = { apps: 50, hubs: 50 }

const SIZES: readonly Size[] = [
  { apps: 10, hubs: 1 },
  { apps: 100, hubs: 1 },
  THOUSAND,
  MOST_APPS,
  ONE_HUB,
  { apps: 50, hubs: 10 },
  MOST_HUBS,
]

export type Grown = Awaited<ReturnType<typeof measureSize>>

/** Measures each size, and adds the memory that each additional app and hub needs to the book. */
export async function measureGrowth({ restMs, largest }: Effort, book: Book): Promise<Grown[]> {
  const grown: Grown[] = []
  const sizes = SIZES.filter(({ apps, hubs }) => apps * hubs <= largest)
  for (const size of sizes) grown.push(await measureSize(size, restMs))
  const rss = (size: Size) => grown.find((one) => one.size === size)?.rss
  const [apps, hubs] = [slope(rss(THOUSAND), rss(MOST_APPS), 4000), slope(rss(ONE_HUB), rss(MOST_HUBS), 49)]
  if (apps !== undefined) book.add('hub2mqtt', 'appRss', apps)
  if (hubs !== undefined) book.add('hub2mqtt', 'hubRss', hubs)
  return grown
}

async function measureSize(size: Size, restMs: number) {
  await using bench = await startBench({ subject: 'hub2mqtt', ...size })
  await sleep(restMs)
  const { rss } = bench.bridge
  await burst(bench, 20_000)
  const { cpuUs } = await burst(bench, 20_000)
  return { size, startMs: bench.startMs, rss, cpuUs }
}

function slope(from: number | undefined, to: number | undefined, steps: number): number | undefined {
  return from === undefined || to === undefined ? undefined : (to - from) / steps
}
