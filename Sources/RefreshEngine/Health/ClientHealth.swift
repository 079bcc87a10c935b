package import Clocks
package import Scheduler
package import Store

/// What is known of one client id, shared by all workers through the store.
package struct ClientHealth: Hashable, Sendable {
    /// A proven grant that was answered as if its token were another client's, and when first.
    package struct Suspect: Hashable, Sendable {
        package var grant: GrantID
        package var since: Timestamp
    }

    /// How many suspects are remembered; more than these are a fault of the client, not of grants.
    package static let mostSuspects = 32

    /// The epoch of the instants below: those of another boot mean nothing.
    package var epoch: String
    package var breaker: Breaker
    package var limits: Pacer.Limits
    package var window: AnswerWindow
    /// When a proven grant of this client was last refreshed.
    package var provenSuccessAt: Timestamp?
    /// When the endpoint last worked again after it had failed for all.
    package var outageEndedAt: Timestamp?
    package var suspects: [Suspect]

    package init(
        epoch: String,
        breaker: Breaker = Breaker(),
        limits: Pacer.Limits = Pacer.Limits(),
        window: AnswerWindow = AnswerWindow(),
        provenSuccessAt: Timestamp? = nil,
        outageEndedAt: Timestamp? = nil,
        suspects: [Suspect] = []
    ) {
        self.epoch = epoch
        self.breaker = breaker
        self.limits = limits
        self.window = window
        self.provenSuccessAt = provenSuccessAt
        self.outageEndedAt = outageEndedAt
        self.suspects = suspects
    }

    /// The same health in another epoch: what was told by the old epoch's clock is forgotten.
    package func inEpoch(_ epoch: String) -> ClientHealth {
        guard epoch != self.epoch else { return self }
        return ClientHealth(
            epoch: epoch,
            window: window,
            provenSuccessAt: provenSuccessAt,
            outageEndedAt: outageEndedAt,
            suspects: suspects
        )
    }

    /// Since when a proven grant has been suspected; `nil` when it is not.
    package func suspectSince(_ grant: GrantID) -> Timestamp? {
        suspects.first { $0.grant == grant }?.since
    }

    package mutating func suspect(_ grant: GrantID, at now: Timestamp) {
        suspects = suspects.suffix(Self.mostSuspects - 1) + [Suspect(grant: grant, since: now)]
    }

    package mutating func clear(_ grant: GrantID) {
        suspects.removeAll { $0.grant == grant }
    }
}
