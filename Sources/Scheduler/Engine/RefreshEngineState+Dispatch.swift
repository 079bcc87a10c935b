import Base
import Storage

/// The dispatch of queued grants, as the clients' breakers and paces and the in-flight limit allow.
extension RefreshEngineState {
    /// The number of grants in one claim.
    private static let batchSize = 100
    /// The time between claims of a client while the grants that can go are few: a claim of one costs as much as a
    /// claim of many.
    ///
    /// A grant goes at once if the last claim is longer ago. Others wait for a common claim, at most this long.
    /// A third of this time costs 2.3 times as much processor time at 50 refreshes a second, and 1.3 times at 1,600.
    /// It is shorter than the pacer's burst, so the pace loses no request. Claims of more than a hundred are not
    /// cheaper, and hold the writer longer. No grant is claimed before its due time: that would be a second way to be
    /// due.
    static let gatheringTime: Duration = .milliseconds(75)
    private static let pauseWhileCommitsFail: Duration = .seconds(1)

    /// One visit to each client, with at most one claim that sends something.
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

    /// How many grants of a client can be claimed now.
    private struct Allowance {
        var count = 0
        /// The time after which to ask again if there are none, or `nil` if an event will wake the loop.
        var wait: Duration?
    }

    /// Decides on the next step of a round, from the state after the step before it.
    mutating func nextStep(of round: inout DispatchRound, under conditions: Conditions) -> DispatchStep {
        while let client = round.clients.first {
            // A failed claim ends the round: the next claim would wait as long for the same failure.
            if let pause = claimPause(under: conditions) { return .end(pause) }
            if let step = nextStep(for: client, of: &round, under: conditions) { return step }
            round.clients.removeFirst()
        }
        return .end(round.shortestWait)
    }

    /// Returns what to do for one client, or `nil` if the round goes on with the next.
    private mutating func nextStep(
        for client: String,
        of round: inout DispatchRound,
        under conditions: Conditions
    ) -> DispatchStep? {
        guard let gate = gates[client], mayClaim(under: conditions) else { return nil }
        let hasQueue = !gate.queue.isEmpty
        guard hasQueue || !gate.deferredRevocations.isEmpty else { return nil }
        // One claim for each round: other clients, scans and the clock must not wait for a long queue.
        if gate.lastClaim?.round == rounds {
            round.wait(.zero)
            return nil
        }
        let instant = sharedInstant(at: conditions.instant)
        switch gate.health.breaker.permits(at: instant) {
        case .wait(let until):
            round.wait(until - instant)
            return nil
        case .probeDue where hasQueue:
            // A worker that is cut off would spend the probe that all workers share.
            if leavesGrantsToOthers, leaveGrants(of: client, at: conditions.now) != .zero { return nil }
            round.clients.removeFirst()
            return .askForProbe(client: client)
        case .all, .probeDue:
            return claim(of: client, in: &round, under: conditions)
        }
    }

    /// Returns the claim of the refreshes of a client that can go now, or else of its revocations.
    private mutating func claim(
        of client: String,
        in round: inout DispatchRound,
        under conditions: Conditions
    ) -> DispatchStep? {
        let queueLength = gates[client]?.queue.count ?? 0
        if queueLength > 0 {
            let allowance = allowance(of: client, queueLength: queueLength, under: conditions)
            if allowance.count > 0 {
                let ids = takeFromQueue(of: client, atMost: allowance.count, at: conditions.instant)
                return .claim(ids, client: client, takenAt: conditions.instant)
            }
            round.wait(allowance.wait)
            // What the pace gives while refreshes gather is theirs.
            guard gates[client]?.pause(Self.gatheringTime, at: conditions.instant) == .zero else { return nil }
        }
        let (ids, wait) = takeRevocations(of: client, at: conditions.instant)
        if !ids.isEmpty { return .claim(ids, client: client, takenAt: conditions.instant) }
        round.wait(wait)
        return nil
    }

    /// Decides on the queue of a client whose breaker is closed.
    private mutating func allowance(
        of client: String,
        queueLength: Int,
        under conditions: Conditions
    ) -> Allowance {
        let wanted = min(queueLength, Self.batchSize)
        var free = min(maximumInFlight - slots.count, wanted)
        // At the in-flight limit no timer is needed: a completed refresh wakes the loop.
        guard free >= min(wanted, minimumFreeSlots) else { return Allowance() }
        if leavesGrantsToOthers {
            let wait = leaveGrants(of: client, at: conditions.now)
            guard wait == .zero else { return Allowance(wait: wait) }
            free = 1
        }
        if let first = gates[client]?.copySuspicion, let maximum = first.maximumInFlight(at: conditions.instant) {
            free = min(free, maximum - refreshesInFlight(of: client))
            guard free > 0 else { return Allowance(wait: first.nextTry(after: conditions.instant)) }
        }
        if let pause = gatheringPause(of: client, free: free, at: conditions.instant) { return Allowance(wait: pause) }
        let instant = sharedInstant(at: conditions.instant)
        guard let count = gates[client]?.pacer.take(upTo: free, at: instant), count > 0 else {
            return Allowance(wait: gates[client]?.pacer.nextAvailable(at: instant))
        }
        return Allowance(count: count)
    }

    private func refreshesInFlight(of client: String) -> Int {
        refreshes.count { !$0.isRevocation && $0.grant.clientID == client }
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
        guard let gate = gates[client] else { return nil }
        let ready = min(free, gate.pacer.available(at: sharedInstant(at: instant)))
        let pause = gate.pause(Self.gatheringTime, at: instant)
        return ready < worthwhileClaim && pause > .zero ? pause : nil
    }

    /// A claim has sent nothing: it was not the client's turn, and the next one does not wait for more grants.
    mutating func claimWasEmpty(of client: String) { gates[client]?.forgetLastClaim() }

    private mutating func takeFromQueue(of client: String, atMost count: Int, at instant: BootInstant) -> [GrantID] {
        let taken =
            gates[client]?.take(atMost: count, at: instant, inRound: rounds, fullClaim: Self.batchSize) ?? []
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
    func nextIteration(after wait: Duration?, under conditions: Conditions) -> Timestamp {
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
