import Clocks
import JSON
import Scheduler
import Store

/// The stored form: JSON, so that an operator can read it with the database's own shell.
///
/// What cannot be read is as good as nothing known: health is advice, never the only copy of anything.
extension ClientHealth {
    package init(stored: [UInt8]?, epoch: String) {
        guard let stored, let body = JSONValue.object(in: stored), let storedEpoch = body["epoch"]?.string else {
            self.init(epoch: epoch)
            return
        }
        let stale = ClientHealth(
            epoch: storedEpoch,
            breaker: Breaker(body["breaker"]),
            limits: Pacer.Limits(body["limits"]),
            window: AnswerWindow(body["window"]),
            provenSuccessAt: body["proven_success_at"]?.milliseconds.map { Timestamp(milliseconds: $0) },
            outageEndedAt: body["outage_ended_at"]?.milliseconds.map { Timestamp(milliseconds: $0) },
            suspects: (body["suspects"]?.array ?? []).compactMap { entry in
                guard let id = entry["grant"]?.string.flatMap({ GrantID($0) }), let since = entry["since"]?.milliseconds
                else {
                    return nil
                }
                return Suspect(grant: id, since: Timestamp(milliseconds: since))
            }
        )
        self = stale.inEpoch(epoch)
    }

    package var stored: [UInt8] {
        var line = JSONLine()
        line.field("epoch", epoch)
        line.object("breaker") { breaker.write(into: &$0) }
        line.object("limits") { limits.write(into: &$0) }
        line.field("window", window.text)
        if let provenSuccessAt { line.field("proven_success_at", provenSuccessAt.milliseconds) }
        if let outageEndedAt { line.field("outage_ended_at", outageEndedAt.milliseconds) }
        line.array("suspects") { array in
            for suspect in suspects {
                array.object { entry in
                    entry.field("grant", suspect.grant.description)
                    entry.field("since", suspect.since.milliseconds)
                }
            }
        }
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

extension AnswerWindow {
    /// One text instead of two hundred objects: it is rewritten with every batch of answers.
    ///
    /// Each entry is the grant's id behind `-` for `invalid_grant` and `+` for anything else.
    fileprivate var text: String {
        var text: [UInt8] = []
        text.reserveCapacity(17 * entries.count)
        for entry in entries {
            text.append(entry.saysInvalid ? UInt8(ascii: "-") : UInt8(ascii: "+"))
            entry.grant.appendDigits(to: &text)
        }
        return String(decoding: text, as: UTF8.self)
    }

    fileprivate init(_ stored: JSONValue?) {
        let text = Array((stored?.string ?? "").utf8)
        self.init(
            entries: stride(from: 0, to: text.count - text.count % 17, by: 17).compactMap { start in
                guard let id = GrantID(digits: text[start + 1..<start + 17]) else { return nil }
                return Entry(grant: id, saysInvalid: text[start] == UInt8(ascii: "-"))
            }
        )
    }
}

/// Numbers within bounds that no arithmetic on them leaves: a damaged text must not end the process.
extension JSONValue {
    fileprivate var milliseconds: Int64? { integer(within: 0...1 << 53) }

    fileprivate var count: Int? { integer(within: 0...1_000_000).map { Int($0) } }

    private func integer(within bounds: ClosedRange<Int64>) -> Int64? {
        integer.flatMap { bounds.contains($0) ? $0 : nil }
    }
}
