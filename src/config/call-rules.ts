/** What the generic call may reach, as a row of its option says. */
import * as v from 'valibot'
import { METHODS, SECTIONS } from '../contract/calls.ts'

const EXPECTED = 'expected such as {item: notifications, methods: [GET]}'
const METHOD = `expected a list of ${METHODS.join(', ')}`

const row = v.strictObject(
  {
    section: v.exactOptional(v.picklist(SECTIONS, `expected ${SECTIONS.join(' or ')}`)),
    item: v.pipe(v.string(EXPECTED), v.regex(/^[^\p{Cc}\p{Cs}]{1,256}$/u, EXPECTED)),
    methods: v.pipe(v.array(v.picklist(METHODS, METHOD), METHOD), v.nonEmpty(METHOD), v.readonly()),
  },
  EXPECTED,
)

/** A file's objects come as maps. */
export const callRule = v.pipe(
  v.unknown(),
  v.transform((given) => (given instanceof Map ? Object.fromEntries(given) : given)),
  row,
  v.readonly(),
  v.metadata({ name: 'call rule' }),
)
