import Base
import Storage

/// The dispatch of queued grants, as the clients' breakers and paces and the in-flight limit allow.
extension RefreshEngineState {
    /// The number of grants in one claim.
    private static let batchSize = 100
    /// The time between claims of a client while the grants that can go are few: a claim of one costs as much as a
    /// claim of many.
    ///
    /// A grant that falls due alone goes at once. Under load they go a hundred at a time, at most this much late.
    /// Claims of ten to twenty cost 1.8 times as much for each refresh. Claims of more than a hundred are not cheaper,
    /// and hold the writer longer. No grant is claimed before its due time: that would be a second way to be due.
    static let gatheringTime: Duration = .milliseconds(25)
    private static let pauseWhileCommitsFail: Duration = .seconds(1)

    /// One visit to each client.
    struct DispatchRound {
        fileprivate var clients: ArraySlice<String>
        fileprivate var shortestWait: Duration?
    }

    /// The next step of a round.
    enum DispatchStep {
        /// Claims and sends grants of a client.
        ///
        /// `takenAt` is the instant at which its pace allowed them.
        case claim([GrantID], client: String, takenAt: BootInstant)
        /// Asks the store for this client's probe.
        case askForProbe(client: String)
        /// Ends the round.
        ///
        /// The next one is due after the wait, or after any event if that is `nil`.
        case end(Duration?)
    }

    /// Begins a round: another client goes first each time, so that one with a long queue does not take every slot
    /// that becomes free.
    mutating func beginRound() -> DispatchRound {
        let names = gates.keys.sorted()
        guard !names.isEmpty else { return DispatchRound(clients: []) }
        rounds &+= 1
        let first = Int(rounds % UInt64(names.count))
        return DispatchRound(clients: ArraySlice(names[first...] + names[..<first]))
    }

    /// Decides on the next step of a round, from the state after the step before it.
    mutating func nextStep(of round: inout DispatchRound, under conditions: Conditions) -> DispatchStep {
        while let client = round.clients.first {
            // A failed claim ends the round: the next claim would wait as long for the same failure.
            if let pause = claimPause(under: conditions) { return .end(pause) }
            let instant = sharedInstant(at: conditions.instant)
            let count = gates[client]?.queue.count ?? 0
            if count > 0 || gates[client]?.deferredRevocations.isEmpty == false, mayClaim(under: conditions) {
                switch gates[client]?.health.breaker.permits(at: instant) {
                case .wait(let until): round.wait(until - instant)
                case .probeDue where count > 0:
                    round.clients.removeFirst()
                    // A worker that is cut off would spend the probe that all workers share.
                    guard !leavesGrantsToOthers || leaveGrants(of: client, at: conditions.now) == .zero else {
                        continue
                    }
                    return .askForProbe(client: client)
                case .all, .probeDue, nil:
                    let (allowed, wait) = count > 0 ? dispatch(count, of: client, under: conditions) : (0, nil)
                    if allowed > 0 {
                        let ids = takeFromQueue(of: client, atMost: allowed, at: conditions.instant)
                        return .claim(ids, client: client, takenAt: conditions.instant)
                    }
                    round.wait(wait)
                    // What the pace gives while refreshes gather is theirs.
                    if count == 0 || gates[client]?.pause(Self.gatheringTime, at: conditions.instant) == .zero {
                        let (ids, pause) = takeRevocations(of: client, at: conditions.instant)
                        if !ids.isEmpty { return .claim(ids, client: client, takenAt: conditions.instant) }
                        round.wait(pause)
                    }
                }
            }
            round.clients.removeFirst()
        }
        return .end(round.shortestWait)
    }

    /// Decides on a queue whose breaker is closed: how many can go now, or else the wait if one is known.
    private mutating func dispatch(
        _ count: Int,
        of client: String,
        under conditions: Conditions
    ) -> (allowed: Int, wait: Duration?) {
        let wanted = min(count, Self.batchSize)
        var free = min(maximumInFlight - slots.count, wanted)
        // At the in-flight limit no timer is needed: a completed refresh wakes the loop.
        guard free >= min(wanted, minimumFreeSlots) else { return (0, nil) }
        if leavesGrantsToOthers {
            guard let wait = leaveGrants(of: client, at: conditions.now) else { return (0, nil) }
            guard wait == .zero else { return (0, wait) }
            free = 1
        }
        let unproven = gates[client]?.firstAnswers
        if let maximum = unproven?.maximumInFlight(at: conditions.instant) {
            let refreshes = slots.values.lazy.compactMap(\.refresh).filter { !$0.isRevocation }
            free = min(free, maximum - refreshes.count { $0.grant.clientID == client })
            // The next answer wakes the loop.
            guard free > 0 else { return (0, unproven?.wait(at: conditions.instant).flatMap { $0 > .zero ? $0 : nil }) }
        }
        let instant = sharedInstant(at: conditions.instant)
        if let pause = gatheringPause(of: client, free: free, at: conditions.instant) { return (0, pause) }
        let allowed = gates[client]?.pacer.take(upTo: free, at: instant) ?? 0
        return (allowed, allowed > 0 ? nil : gates[client]?.pacer.nextAvailable(at: instant))
    }

    /// The number of revocations that can be sent beside those in flight.
    ///
    /// An endpoint for revocations that hangs must not take the slots of refreshes.
    var freeRevocationSlots: Int {
        max(0, max(1, maximumInFlight / 4) - slots.values.count { $0.refresh?.isRevocation ?? false })
    }

    /// Removes and returns the deferred revocations of a client that can go now, or else the wait if one is known.
    ///
    /// They are sent only while no refresh of the client can be sent.
    mutating func takeRevocations(of client: String, at instant: BootInstant) -> (ids: [GrantID], wait: Duration?) {
        guard gates[client]?.deferredRevocations.isEmpty == false else { return ([], nil) }
        let shared = sharedInstant(at: instant)
        let free = min(freeRevocationSlots, maximumInFlight - slots.count)
        var ids: [GrantID] = []
        // The lease of one that has a slot is being released. Its end wakes the loop.
        while ids.count < free, let key = gates[client]?.deferredRevocations.first?.key,
            slots[GrantID(rawValue: key)] == nil
        {
            guard gates[client]?.pacer.take(upTo: 1, at: shared) == 1 else {
                return (ids, gates[client]?.pacer.nextAvailable(at: shared))
            }
            gates[client]?.deferredRevocations.remove(key)
            ids.append(GrantID(rawValue: key))
        }
        return (ids, nil)
    }

    /// Returns the time for which claims are paused because the store fails, or `nil` while it works.
    func claimPause(under conditions: Conditions) -> Duration? {
        // A completed refresh wakes the loop, so this does not have to be exact.
        if conditions.isCommitFailing { return Self.pauseWhileCommitsFail }
        return claimBackOff.pause(at: conditions.instant)
    }

    /// The number of slots that must be free before more grants are claimed: a claim of few costs as much as a claim
    /// of many.
    var minimumFreeSlots: Int { min(max(maximumInFlight / 4, 1), Self.batchSize / 2) }

    /// The number of grants that go at once, however short the time since the last claim.
    private var worthwhileClaim: Int { min(2 * minimumFreeSlots, maximumInFlight) }

    /// Returns the time for which a few grants still wait for more, or `nil` if they can go.
    private func gatheringPause(of client: String, free: Int, at instant: BootInstant) -> Duration? {
        guard let gate = gates[client], gate.lastClaim?.round != rounds else { return nil }
        let ready = min(free, gate.pacer.available(at: sharedInstant(at: instant)))
        let pause = gate.pause(Self.gatheringTime, at: instant)
        return ready < worthwhileClaim && pause > .zero ? pause : nil
    }

    private mutating func takeFromQueue(of client: String, atMost count: Int, at instant: BootInstant) -> [GrantID] {
        let taken = gates[client]?.take(atMost: count, at: instant, inRound: rounds) ?? []
        queued.subtract(taken)
        return taken
    }

    /// Returns the next grant to probe with, after the store has granted the probe, or `nil` if there is none.
    mutating func nextToProbe(of client: String, at instant: BootInstant) -> GrantID? {
        guard !isStopping else { return nil }
        return takeFromQueue(of: client, atMost: 1, at: instant).first
    }

    /// `true` if a grant's request to the token endpoint was sent and is unanswered.
    ///
    /// A grant that another worker has, or that needs no request to the token endpoint, proves nothing: the next one is
    /// the probe.
    func isProbe(_ id: GrantID) -> Bool { slots[id]?.refresh?.needsTokenRequest ?? false }

    /// Returns the time of the next iteration of the loop, after a round that ended with this wait.
    ///
    /// A grant that falls due does not wake the loop while it would only wait for more grants.
    func nextIteration(after wait: Duration?, at conditions: Conditions) -> Timestamp {
        let untilScan = nextScan - conditions.instant
        let next = conditions.now + max(.zero, min(wait ?? untilScan, untilScan))
        guard let firstDueAt = window.firstDueAt, let client = window.firstClient else { return next }
        let pause = gates[client]?.pause(Self.gatheringTime, at: conditions.instant) ?? .zero
        return min(next, max(firstDueAt, conditions.now + pause))
    }
}

extension RefreshEngineState.DispatchRound {
    fileprivate mutating func wait(_ wait: Duration?) {
        guard let wait else { return }
        shortestWait = min(shortestWait ?? wait, wait)
    }
}
