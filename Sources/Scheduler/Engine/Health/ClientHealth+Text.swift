import Base
import Storage

/// The stored form: JSON, so that an operator can read it with the database's own shell.
///
/// A field that is missing or cannot be read counts as unknown: the next answers fill it again.
extension ClientHealth {
    package init(stored: [UInt8]?, epoch: String) {
        guard let stored, let body = JSONValue.object(in: stored), let storedEpoch = body["epoch"]?.string else {
            self.init(epoch: epoch)
            return
        }
        let inStoredEpoch = ClientHealth(
            epoch: storedEpoch,
            breaker: Breaker(body["breaker"]),
            limits: Pacer.Limits(body["limits"]),
            recentAnswers: RecentAnswers(body["window"]),
            rate: InvalidGrantRate(body["rate"]),
            unconfirmedEnds: (body["believed"]?.array ?? []).compactMap { entry in
                guard let id = entry["grant"]?.string.flatMap({ GrantID($0) }), let at = entry["at"]?.milliseconds
                else {
                    return nil
                }
                return UnconfirmedEnd(grant: id, at: Timestamp(milliseconds: at))
            },
            provenSuccessAt: body["proven_success_at"]?.milliseconds.map { Timestamp(milliseconds: $0) },
            provenClientSecret: ClientSecretFingerprint(stored: body["proven_client_secret"]),
            outageEndedAt: body["outage_ended_at"]?.milliseconds.map { Timestamp(milliseconds: $0) },
            failingSince: body["failing_since"]?.milliseconds.map { BootInstant(milliseconds: $0) },
            refusals: ConsecutiveRefusals(body["refusals"])
        )
        self = inStoredEpoch.inEpoch(epoch)
    }

    var stored: [UInt8] {
        var line = JSONLine()
        line.field("version", 2)
        line.field("epoch", epoch)
        line.object("breaker") { breaker.write(into: &$0) }
        line.object("limits") { limits.write(into: &$0) }
        line.field("window", recentAnswers.text)
        line.object("rate") { rate.write(into: &$0) }
        if !unconfirmedEnds.isEmpty {
            line.array("believed") { array in
                for entry in unconfirmedEnds {
                    array.object {
                        $0.field("grant", entry.grant.description)
                        $0.field("at", entry.at.milliseconds)
                    }
                }
            }
        }
        if let provenSuccessAt { line.field("proven_success_at", provenSuccessAt.milliseconds) }
        if provenClientSecret != .none { line.field("proven_client_secret", Int64(provenClientSecret.rawValue)) }
        if let outageEndedAt { line.field("outage_ended_at", outageEndedAt.milliseconds) }
        if let failingSince { line.field("failing_since", failingSince.milliseconds) }
        if refusals != ConsecutiveRefusals() { line.object("refusals") { refusals.write(into: &$0) } }
        return line.bytes
    }
}

extension Breaker {
    fileprivate init(_ body: JSONValue?) {
        self.init()
        guard let body, let word = body["state"]?.string else { return }
        let reason: Reason =
            if let code = body["code"]?.string { .clientFault(code) } else { .endpointFailing }
        let since = BootInstant(milliseconds: body["since"]?.milliseconds ?? 0)
        let nextProbe = BootInstant(milliseconds: body["next_probe"]?.milliseconds ?? 0)
        let probes = body["probes"]?.count ?? 0
        switch word {
        case "open":
            self.init(state: .open(reason: reason, since: since, nextProbe: nextProbe, probes: probes))
        case "probing":
            self.init(state: .probing(reason: reason, since: since, nextProbe: nextProbe, probes: probes))
        default:
            self.init(
                state: .closed(
                    consecutiveFailures: body["failures"]?.count ?? 0,
                    grants: (body["grants"]?.array ?? []).compactMap { $0.string.flatMap { GrantID($0)?.rawValue } }
                )
            )
        }
    }

    fileprivate func write(into line: inout JSONLine) {
        switch state {
        case .closed(let failures, let grants):
            line.field("state", "closed")
            line.field("failures", failures)
            line.array("grants") { array in
                for grant in grants { array.element(GrantID(rawValue: grant).description) }
            }
        case .open(let reason, let since, let nextProbe, let probes):
            line.field("state", "open")
            Self.write(reason, since, nextProbe, probes, into: &line)
        case .probing(let reason, let since, let nextProbe, let probes):
            line.field("state", "probing")
            Self.write(reason, since, nextProbe, probes, into: &line)
        }
    }

    private static func write(
        _ reason: Reason,
        _ since: BootInstant,
        _ nextProbe: BootInstant,
        _ probes: Int,
        into line: inout JSONLine
    ) {
        if case .clientFault(let code) = reason { line.field("code", code) }
        line.field("since", since.milliseconds)
        line.field("next_probe", nextProbe.milliseconds)
        line.field("probes", probes)
    }
}

extension Pacer.Limits {
    fileprivate init(_ body: JSONValue?) {
        self.init()
        if let perThousandSeconds = body?["ceiling_per_1000_s"]?.integer, let at = body?["cut_at"]?.milliseconds {
            cut = Pacer.Cut(ceiling: Double(perThousandSeconds) / 1000, at: BootInstant(milliseconds: at))
        }
        pausedUntil = body?["paused_until"]?.milliseconds.map { BootInstant(milliseconds: $0) }
    }

    fileprivate func write(into line: inout JSONLine) {
        if let cut {
            line.field("ceiling_per_1000_s", Int64((cut.ceiling * 1000).rounded()))
            line.field("cut_at", cut.at.milliseconds)
        }
        if let pausedUntil { line.field("paused_until", pausedUntil.milliseconds) }
    }
}

extension RecentAnswers {
    /// One character per answer: `-` for `invalid_grant` and `+` for anything else.
    fileprivate var text: String {
        String(decoding: answers.map { $0 ? UInt8(ascii: "-") : UInt8(ascii: "+") }, as: UTF8.self)
    }

    fileprivate init(_ stored: JSONValue?) {
        self.init(
            answers: (stored?.string ?? "").utf8.compactMap { sign in
                switch sign {
                case UInt8(ascii: "-"): true
                case UInt8(ascii: "+"): false
                default: nil
                }
            }
        )
    }
}

extension InvalidGrantRate {
    fileprivate init(_ body: JSONValue?) {
        let minutes = Self.rows(body?["minutes"]).map {
            Minute(number: $0[0], answers: Int($0[1]), invalid: Int($0[2]), ended: Int($0[3]), dropped: Int($0[4]))
        }
        let blocks = Self.rows(body?["blocks"]).map { Block(since: $0[0], answers: Int($0[1]), invalid: Int($0[2])) }
        let baselines = Self.rows(body?["baseline"]).map {
            Baseline(day: $0[0], answers: Int($0[1]), ended: Int($0[2]))
        }
        self.init(
            minutes: minutes.sorted { $0.number < $1.number },
            blocks: blocks.sorted { $0.since < $1.since },
            baseline: baselines.first ?? Baseline()
        )
    }

    fileprivate func write(into line: inout JSONLine) {
        let minutes = minutes.map { "\($0.number)/\($0.answers)/\($0.invalid)/\($0.ended)/\($0.dropped)" }
        line.field("minutes", minutes.joined(separator: " "))
        let blocks = blocks.map { "\($0.since)/\($0.answers)/\($0.invalid)" }
        line.field("blocks", blocks.joined(separator: " "))
        line.field("baseline", "\(baseline.day)/\(baseline.answers)/\(baseline.ended)")
    }

    /// Parses rows of numbers, with slashes between numbers and spaces between rows.
    ///
    /// A number that a row lacks is zero, and damaged rows are left out.
    private static func rows(_ stored: JSONValue?) -> [[Int64]] {
        let text = stored?.string ?? ""
        return text.split(separator: " ").prefix(16).compactMap { (row: Substring) -> [Int64]? in
            let numbers: [Int64] = row.split(separator: "/").prefix(5).compactMap { (text: Substring) in
                Int64(text)
            }
            guard !numbers.isEmpty, numbers.allSatisfy({ (0...1 << 40).contains($0) }) else { return nil }
            return numbers + Array(repeating: 0, count: 5 - numbers.count)
        }
    }
}

extension ConsecutiveRefusals {
    fileprivate init(_ body: JSONValue?) {
        self.init(
            since: body?["since"]?.milliseconds.map { BootInstant(milliseconds: $0) },
            count: body?["count"]?.count ?? 0,
            grants: (body?["grants"]?.array ?? []).compactMap { $0.string.flatMap { GrantID($0)?.rawValue } }
        )
    }

    fileprivate func write(into line: inout JSONLine) {
        if let since { line.field("since", since.milliseconds) }
        line.field("count", count)
        line.array("grants") { array in
            for grant in grants { array.element(GrantID(rawValue: grant).description) }
        }
    }
}

/// Numbers within bounds that keep all arithmetic on them from overflowing: a damaged text must not end the process.
extension JSONValue {
    fileprivate var milliseconds: Int64? { integer(within: 0...1 << 53) }

    fileprivate var count: Int? { integer(within: 0...1_000_000).map { Int($0) } }

    private func integer(within bounds: ClosedRange<Int64>) -> Int64? {
        integer.flatMap { bounds.contains($0) ? $0 : nil }
    }
}
