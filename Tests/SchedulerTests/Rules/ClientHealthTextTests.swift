import Base
import GoogleOAuth
import Storage
import Testing

@testable import Scheduler

@Suite("The stored text of a client's health")
struct ClientHealthTextTests {
    private static let breakers: [Breaker.State] = [
        .closed(consecutiveFailures: 0, grants: []),
        .closed(consecutiveFailures: 19, grants: [1, 2, .max]),
        .open(
            reason: .clientFault("invalid_client"),
            since: BootInstant(milliseconds: 5),
            nextProbe: BootInstant(milliseconds: 9),
            probes: 3
        ),
        .open(
            reason: .endpointFailing,
            since: BootInstant(milliseconds: 5),
            nextProbe: BootInstant(milliseconds: 9),
            probes: 0
        ),
        .probing(
            reason: .clientFault("deleted_client"),
            since: BootInstant(milliseconds: 5),
            nextProbe: BootInstant(milliseconds: 9),
            probes: 7
        ),
    ]

    private static func health(_ breaker: Breaker.State) -> ClientHealth {
        var health = ClientHealth(
            epoch: "boot \"1\"",
            breaker: Breaker(state: breaker),
            limits: Pacer.Limits(
                cut: Pacer.Cut(ceiling: 12.5, at: BootInstant(milliseconds: 77)),
                pausedUntil: BootInstant(milliseconds: 99)
            ),
            provenSuccessAt: start,
            provenSecretFingerprint: ClientSecretFingerprint(rawValue: .max),
            outageEndedAt: start - .seconds(9)
        )
        for number in 0..<200 {
            health.recordAnswer(isRefusal: number.isMultiple(of: 3), at: start + .seconds(number * 10))
        }
        health.recordEnd(of: GrantID(rawValue: 0), isConfirmed: false, at: start + .seconds(2_000))
        health.recordEnd(of: GrantID(rawValue: .max), isConfirmed: false, at: start + .seconds(2_001))
        health.failingSince = BootInstant(milliseconds: 55)
        health.lastWave = ClientHealth.Wave(lastRefusalAt: start + .seconds(2_002), recoveries: 2)
        health.failures.record("timeout", status: nil, at: start)
        for second in 0..<9 { health.failures.record("http_503", status: 503, at: start + .seconds(second)) }
        health.clientErrors = ConsecutiveClientErrors(
            since: BootInstant(milliseconds: 66),
            count: 12,
            grants: [1, .max]
        )
        return health
    }

    @Test("comes back as it was", arguments: breakers)
    func roundTrip(breaker: Breaker.State) {
        let health = Self.health(breaker)
        #expect(ClientHealth(stored: health.stored, epoch: "boot \"1\"") == health)
        let bare = ClientHealth(epoch: "boot \"1\"", breaker: Breaker(state: breaker))
        #expect(ClientHealth(stored: bare.stored, epoch: "boot \"1\"") == bare)
    }

    @Test("of another boot keeps the fields that do not depend on the boot clock", arguments: breakers)
    func otherEpoch(breaker: Breaker.State) {
        let health = Self.health(breaker)
        let read = ClientHealth(stored: health.stored, epoch: "boot 2")
        #expect(read.epoch == "boot 2")
        #expect(read.breaker == Breaker())
        #expect(read.limits == Pacer.Limits())
        #expect(read.provenSuccessAt == health.provenSuccessAt)
        #expect(read.provenSecretFingerprint == health.provenSecretFingerprint)
        #expect(read.rate == health.rate)
        #expect(read.unconfirmedEnds == health.unconfirmedEnds)
        #expect(read.failures == health.failures && read.failures.count == 2)
        #expect(read.clientErrors == ConsecutiveClientErrors() && read.failingSince == nil)
    }

    @Test("that is missing or has another form counts as unknown")
    func nothingKnown() {
        let nothing = ClientHealth(epoch: "boot")
        #expect(ClientHealth(stored: nil, epoch: "boot") == nothing)
        for text in [
            "", "{}", "[]", "null", "{\"epoch\":5}", "{\"epoch\":\"boot\"", "\u{0}\u{1}", "{\"epoch\":\"boot\"}",
        ] {
            #expect(ClientHealth(stored: Array(text.utf8), epoch: "boot") == nothing, "\(text)")
        }
    }

    @Test("is short, however many answers there were")
    func size() {
        var health = ClientHealth(epoch: "boot")
        for number in 0..<100_000 {
            health.recordAnswer(isRefusal: number % 7 == 0, at: start + .milliseconds(number * 10))
            health.failures.record("http_\(500 + number % 90)", status: 500 + number % 90, at: start)
        }
        #expect(health.stored.count < 1_000, "\(health.stored.count) bytes")
    }

    @Test("keeps each number of the usual rate in its place")
    func baseline() throws {
        let text = #"{"version":2,"epoch":"boot","rate":{"minutes":"","blocks":"","baseline":"20000/1000/7"}}"#
        let rate = ClientHealth(stored: Array(text.utf8), epoch: "boot").rate
        #expect(rate.baseline.answers == 1000 && rate.baseline.ended == 7 && rate.baseline.refused == 0)
        var line = JSONLine()
        rate.write(into: &line)
        #expect(line.text.contains(#""baseline":"20000/1000/7""#))
    }

    @Test(
        "with numbers out of bounds does no harm",
        arguments: [
            "-9223372036854775808", "9223372036854775807", "-1", "1e15", "1e400", "99999999999999999999", "0.5",
        ]
    )
    func wildNumbers(number: String) throws {
        for state in ["open", "probing", "closed", "unheard_of"] {
            let text = """
                {"epoch":"boot","breaker":{"state":"\(state)","failures":\(number),"grants":["\(number)",\(number)],\
                "since":\(number),"next_probe":\(number),"probes":\(number)},"limits":{"ceiling_per_1000_s":\(number),\
                "cut_at":\(number),"paused_until":\(number)},"proven_success_at":\(number),\
                "failing_since":\(number),"rate":{"minutes":"\(number)/\(number)/\(number) 5 /","blocks":"\(number)/1",\
                "baseline":"\(number)/\(number)/\(number)"},"refusals":{"since":\(number),"count":\(number),"grants":[5]},\
                "failures":[{"code":"\(number)","status":\(number),"since":\(number),"last_at":\(number),\
                "count":\(number)},5,{"code":"timeout","since":1,"last_at":1,"count":\(number)}],"believed":[{"grant":"0000000000000001","at":\(number)},{"grant":"x"},5]}
                """
            var fixture = RulesFixture()
            fixture.health = ClientHealth(stored: Array(text.utf8), epoch: "boot")
            try Self.exercise(&fixture)
        }
    }

    @Test("that is damaged anywhere does no harm", arguments: [11, 12] as [UInt64])
    func damaged(seed: UInt64) throws {
        let random = SeededRandom(seed: seed)
        for round in 0..<150 {
            let breaker = Self.breakers[round % Self.breakers.count]
            var bytes = Self.health(breaker).stored
            for _ in 0...Int(random.nextBits() % 4) {
                let place = Int(random.nextBits() % UInt64(bytes.count))
                switch random.nextBits() % 3 {
                case 0: bytes[place] = UInt8(truncatingIfNeeded: random.nextBits())
                case 1: bytes.insert(UInt8(ascii: "9"), at: place)
                default: bytes.removeSubrange(place..<min(bytes.count, place + 1 + Int(random.nextBits() % 20)))
                }
                if bytes.isEmpty { break }
            }
            var fixture = RulesFixture()
            fixture.health = ClientHealth(stored: bytes, epoch: "boot \"1\"")
            try Self.exercise(&fixture)
        }
    }

    /// Exercises a health in every way that an engine does: no call may trap, and the result can be stored again.
    private static func exercise(_ fixture: inout RulesFixture) throws {
        let verdicts: [RefreshFailure] = [
            .noAnswer(code: "timeout"), .clientFault(code: "invalid_client"), .throttled(code: "http_429"),
            .clientOrForeignToken(code: "unauthorized_client"), .invalidGrant,
        ]
        for verdict in verdicts {
            var grant = try Sample.grant(1)
            _ = fixture.health.breaker.permits(at: fixture.instant)
            _ = fixture.health.breaker.beginProbe(at: fixture.instant, deadline: .seconds(20))
            _ = fixture.refuse(verdict, on: &grant, retryAfter: .seconds(3))
            var pacer = Pacer(maxRate: 200)
            pacer.limits = fixture.health.limits
            _ = pacer.take(upTo: 5, at: fixture.instant)
            #expect(pacer.nextAvailable(at: fixture.instant) >= .zero)
            fixture.advance(by: .seconds(1))
        }
        let stored = fixture.health.stored
        #expect(ClientHealth(stored: stored, epoch: fixture.health.epoch).stored == stored)
    }
}
