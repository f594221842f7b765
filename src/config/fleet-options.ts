import * as v from 'valibot'
import { MEMBER_NAME } from '../base/member-name.ts'
import { natsUrls, password } from './addresses.ts'
import { duration, integer, label, secret, text } from './schemas.ts'
import { defineOptions, option } from './table.ts'

const shard = v.pipe(
  text({
    name: 'shard',
    quotable: true,
    expected: 'the number of this bridge and the total in quotes, such as "3/8"',
    pattern: /^[1-9]\d{0,2}\/[1-9]\d{0,2}$/,
  }),
  v.check(
    (value) => {
      const [number = 0, of = 0] = value.split('/').map(Number)
      return number <= of
    },
    ({ input }) => `expected a number up to ${input.split('/')[1]}`,
  ),
)

const member = text({
  name: 'member',
  expected:
    'a name such as bridge-0: 1 to 32 characters a-z, 0-9, _ and -, other than cmd, result, constructor, prototype and __proto__',
  pattern: MEMBER_NAME,
})

const bucket = text({
  name: 'bucket',
  expected: 'a name such as hub2mqtt: 1 to 64 characters A-Z, a-z, 0-9, _ and -',
  pattern: /^[A-Za-z0-9_-]{1,64}$/,
})

export const fleetOptions = defineOptions({
  'fleet.shard': option(shard, { example: '3/8' }).doc(
    'Share of the hubs that this bridge serves, if several bridges divide the hubs by number: `3/8` is the third of eight shares.',
  ),
  'fleet.index': option(integer(0, 998), { example: 2 }).doc(
    'Number of this bridge, counted from 0 as in Kubernetes; needs `fleet.count`.',
  ),
  'fleet.count': option(integer(1, 999), { example: 8 }).doc('Number of bridges; needs `fleet.index`.'),
  'fleet.nats': {
    doc: 'NATS servers with JetStream, which the bridges of a fleet use to share the hubs by leases: if a bridge dies, the other bridges take over its hubs.',
    schema: natsUrls,
    default: [],
    example: ['nats://nats-0:4222', 'nats://nats-1:4222'],
  },
  'fleet.username': option(label, { example: 'hub2mqtt', live: { ifSame: 'fleet.nats' } }).doc('User name for NATS.'),
  'fleet.password': secret(password, 'put-the-password-here', { live: { ifSame: 'fleet.nats' } }).doc(
    'Password for NATS.',
  ),
  'fleet.bucket': option(bucket, { default: 'hub2mqtt' }).doc(
    'Name of the key-value bucket in NATS; each fleet needs its own bucket.',
  ),
  'fleet.lease': option(duration('5s', '5m'), { default: '15s' }).doc(
    'Duration of a lease. A bridge that no longer renews its lease loses its hubs after this time.',
  ),
  'fleet.member': option(member, { example: 'bridge-0' }).doc(
    'Unique name of this bridge in the fleet; default: the name of the machine.',
  ),
})
