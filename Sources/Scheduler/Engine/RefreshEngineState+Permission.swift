import Base

/// The answer of the limits to a pass, or to a caller whose refresh is due now.
enum SendPermission: Equatable {
    /// So many requests can be sent.
    case send(Int)
    /// One grant can be sent if the store grants the client's probe.
    case askForProbe
    /// The question is asked again after this time.
    case wait(Duration)
    /// The question is asked again when a refresh has ended.
    case waitForSlot
    case refuse(VendReason)
}

extension RefreshEngineState {
    /// Decides on up to `count` grants for a pass that ends by `end`.
    mutating func permitPass(
        _ count: Int,
        of client: String,
        until end: BootInstant,
        under conditions: Conditions
    ) -> SendPermission {
        guard conditions.instant < end else { return .refuse(.timeout) }
        guard !isStopping else { return .refuse(.stopping) }
        if let pause = claimPause(under: conditions) { return .wait(pause) }
        // The next report of the workers shows if another worker has the missing key.
        guard conditions.isKeyRingComplete else { return .wait(.milliseconds(50)) }
        let free = min(count, maximumInFlight - slots.count)
        guard free >= min(count, minimumFreeSlots) else { return .waitForSlot }
        return permit(free, of: client, until: end, under: conditions, minimumWait: Self.gatheringTime)
    }

    /// Decides on one refresh for a caller that waits until `end`.
    mutating func permitCaller(
        of client: String,
        until end: BootInstant,
        under conditions: Conditions
    ) -> SendPermission {
        guard !isStopping else { return .refuse(.stopping) }
        // The new token could not be stored either.
        guard !conditions.isCommitFailing else { return .refuse(.storeFailing) }
        return permit(1, of: client, until: end, under: conditions, minimumWait: .milliseconds(1))
    }

    /// Decides by the breaker and the pace of a client.
    private mutating func permit(
        _ count: Int,
        of client: String,
        until end: BootInstant,
        under conditions: Conditions,
        minimumWait: Duration
    ) -> SendPermission {
        addGate(of: client)
        let instant = sharedInstant(at: conditions.instant)
        switch gates[client]?.health.breaker.permits(at: instant) {
        case .wait: return .refuse(.breakerOpen)
        case .probeDue: return .askForProbe
        case .all, nil: break
        }
        let allowed = gates[client]?.pacer.take(upTo: count, at: instant) ?? 0
        guard allowed == 0 else { return .send(allowed) }
        let wait = max(gates[client]?.pacer.nextAvailable(at: instant) ?? .zero, minimumWait)
        return conditions.instant + wait < end ? .wait(wait) : .refuse(.throttled)
    }
}
