/** A report for people. */
import type { OperationReport, Report } from './report.ts'

export function reportText(report: Report): string {
  const { usable, problems, hub, operations, expectations, limit, left, unseen, version } = report
  const all = problems.join('; ')
  const trouble = problems.length === 0 ? '' : ` But: ${all}.`
  const verdict = usable
    ? `hub2mqtt can work with this hub and key.${trouble}`
    : `hub2mqtt cannot work with it: ${all}.`
  if (hub === null) return `${verdict}\n`
  const { kind, because, prefixes, firmware, scopes, apps } = hub
  const section = (title: string, fits: (row: Report['expectations'][number]) => boolean) => {
    const rows = expectations.filter(fits)
    return [
      `${title} (${rows.length})`,
      ...columns(rows.map(({ mark, says, found }) => [`  ${mark}`, says, found])),
      '',
    ]
  }
  return [
    verdict,
    '',
    ...columns([
      ['Kind of hub', `${kind}${because.length === 0 ? '' : ` (${because.join(', ')})`}`],
      ['Firmware', firmware ?? 'not told'],
      ['Paths', prefixes.map((prefix) => `/api/${prefix}/`).join(', ')],
      ['Key', scopes === null ? 'the hub does not tell what it permits' : scopes.join(', ') || 'no permissions'],
      ['Apps', apps === null ? 'not listed' : String(apps)],
      ['Limit', limitText(limit) ?? expectations.find(({ id }) => id === 'rate-limit')?.found ?? ''],
      ...(left === null ? [] : [['Left changed', leftText(left, unseen ?? [])]]),
    ]),
    '',
    'Operations',
    ...columns(operations.map(operationColumns)),
    '',
    ...section('Otherwise than expected', ({ result, mark }) => result === 'differs' && mark !== 'I'),
    ...section('Otherwise than inferred, and no fault', ({ result, mark }) => result === 'differs' && mark === 'I'),
    ...section('As expected', ({ result }) => result === 'agrees'),
    ...section('Not known', ({ result }) => result === 'unknown'),
    'R: the reference; S: the official client; M: measured on hubs; I: inference.',
    `hub2mqtt ${version}. Names, addresses, ids and values are left out.`,
    '',
  ].join('\n')
}

function leftText(left: readonly string[], unseen: readonly string[]): string {
  if (unseen.length === 0) return left.join(', ') || 'nothing'
  return [...left, ...unseen.map((item) => `perhaps ${item}`)].join(', ')
}

function limitText(limit: Report['limit']): string | undefined {
  if (limit === null) return undefined
  const { sent, limitedAfter, retryAfter } = limit
  if (limitedAfter === null) return `none within ${sent} quick requests`
  return `429 after ${limitedAfter} of ${sent} quick requests${retryAfter === null ? '' : ', with Retry-After'}`
}

function operationColumns({ name, method, path, outcome, ms, ...operation }: OperationReport): string[] {
  const { status, error, differs, untried } = operation
  const joined = (parts: readonly unknown[], by: string) => parts.filter((part) => part !== null).join(by)
  const time = outcome === 'ok' && ms !== null ? `${ms} ms` : null
  const notes = joined([differs, untried, time], ', ')
  return [`  ${name}`, method, path, outcome.replace('_', ' '), joined([status, error], ' '), notes]
}

function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}
