internal import Store

/// What it means that an app brings tokens for a user who may have a grant already.
enum ConnectionRules {
    /// How the account that is brought stands to the stored one.
    enum Relation: Hashable, Sendable {
        case first
        case same
        case switched(from: String, to: String)
    }

    struct Verdict: Hashable, Sendable {
        var relation: Relation
        /// Whether the stored tokens may live on beside, or be merged with, those that are brought.
        var keepsStored: Bool
    }

    /// What is known of the owner of a stored grant that names none.
    enum Learnt: Hashable, Sendable {
        case notAsked
        case owner(Grant.Owner)
        /// The grant is dead, so that nobody can tell any more.
        case unknowable
    }

    enum Step: Hashable, Sendable {
        case decided(Verdict)
        /// Ask Google whose the stored grant is; an empty id never means a switch.
        case learnOwner
    }

    static func step(stored: Grant?, learnt: Learnt = .notAsked, brought: Grant.Owner) -> Step {
        guard let stored else { return .decided(Verdict(relation: .first, keepsStored: false)) }
        let owner = stored.owner.named
        if owner.isKnown { return .decided(verdict(stored, ownedBy: owner, brought: brought)) }
        switch learnt {
        case .owner(let owner) where owner.isKnown:
            return .decided(verdict(stored, ownedBy: owner, brought: brought))
        case .owner, .unknowable:
            return .decided(Verdict(relation: .same, keepsStored: false))
        case .notAsked:
            // Without a refresh token, or in a state that ends calls, there is nobody to ask.
            guard stored.refreshToken != nil, !stored.state.endsCalls else {
                return .decided(Verdict(relation: .same, keepsStored: false))
            }
            return .learnOwner
        }
    }

    /// Whether one of the grants that hold a refresh token is known to be of another account than the one that is brought.
    ///
    /// A holder whose token was found to be foreign says nothing about the token's account.
    static func belongToOthers(_ holders: [Grant], than brought: Grant.Owner) -> Bool {
        holders.contains { !$0.hasForeignToken && $0.owner.named.isOtherAccount(than: brought) }
    }

    private static func verdict(_ stored: Grant, ownedBy owner: Grant.Owner, brought: Grant.Owner) -> Verdict {
        if owner.isOtherAccount(than: brought) {
            return Verdict(
                relation: .switched(from: owner.displayName, to: brought.displayName),
                keepsStored: false
            )
        }
        // What the user asked to end may be on its way to being revoked at Google: it is not called back to life.
        // A refresh token of another account is not the user's at all.
        return Verdict(relation: .same, keepsStored: stored.reason != .userRequest && !stored.hasForeignToken)
    }
}

extension ConnectionRules.Relation {
    var isSwitch: Bool {
        if case .switched = self { true } else { false }
    }

    /// The words that the app shows.
    var message: String {
        switch self {
        case .first: "First Gmail connection"
        case .same: "Same Google account or first connection"
        case .switched(let from, let to): "Switching from \(from) to \(to)"
        }
    }
}

extension Grant.Owner {
    /// The owner with empty texts, which some stores keep for what is not known, taken for what they mean.
    fileprivate var named: Grant.Owner {
        var owner = self
        if owner.googleUserID?.isEmpty == true { owner.googleUserID = nil }
        if owner.email?.isEmpty == true { owner.email = nil }
        return owner
    }

    fileprivate var isKnown: Bool { googleUserID != nil || email != nil }

    fileprivate var displayName: String { email ?? googleUserID ?? "another Google account" }
}
