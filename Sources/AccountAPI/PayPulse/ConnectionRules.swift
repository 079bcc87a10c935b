internal import Store

/// The rules for an app that brings tokens for a user who may already have a grant.
enum ConnectionRules {
    /// The relation between the new account and the stored one.
    enum Relation: Hashable, Sendable {
        case first
        case same
        case switched(from: String, to: String)
    }

    struct Verdict: Hashable, Sendable {
        var relation: Relation
        /// `true` if the stored tokens may be kept in addition to the new ones, or merged with them.
        var keepsStored: Bool
    }

    /// The known owner of a stored grant that does not name one.
    enum LearnedAccount: Hashable, Sendable {
        case notAsked
        case owner(Grant.Owner)
        /// The grant is dead, so its owner can no longer be found out.
        case unknowable
    }

    enum Step: Hashable, Sendable {
        case decided(Verdict)
        /// Ask Google for the owner of the stored grant; an empty id never means a switch.
        case learnOwner
    }

    static func step(stored: Grant?, learnt: LearnedAccount = .notAsked, brought: Grant.Owner) -> Step {
        guard let stored else { return .decided(Verdict(relation: .first, keepsStored: false)) }
        let owner = stored.owner.named
        if owner.isKnown { return .decided(verdict(stored, ownedBy: owner, brought: brought)) }
        switch learnt {
        case .owner(let owner) where owner.isKnown:
            return .decided(verdict(stored, ownedBy: owner, brought: brought))
        case .owner, .unknowable:
            return .decided(Verdict(relation: .same, keepsStored: false))
        case .notAsked:
            // Without a refresh token, or in a state that ends calls, Google cannot be asked.
            guard stored.refreshToken != nil, !stored.state.endsCalls else {
                return .decided(Verdict(relation: .same, keepsStored: false))
            }
            return .learnOwner
        }
    }

    /// `true` if one of the grants that hold a refresh token is known to belong to another account than the new one.
    ///
    /// A grant with a foreign token is not counted: its own account is not the token's.
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
        // The revocation at Google may be under way after the user ended the grant, so the grant is not revived.
        // A refresh token of another account is never the user's.
        return Verdict(relation: .same, keepsStored: stored.reason != .userRequest && !stored.hasForeignToken)
    }
}

extension ConnectionRules.Relation {
    var isSwitch: Bool {
        if case .switched = self { true } else { false }
    }

    /// The message that the app shows.
    var message: String {
        switch self {
        case .first: "First Gmail connection"
        case .same: "Same Google account or first connection"
        case .switched(let from, let to): "Switching from \(from) to \(to)"
        }
    }
}

extension Grant.Owner {
    /// The owner with empty texts as `nil`: some stores use them for unknown values.
    fileprivate var named: Grant.Owner {
        var owner = self
        if owner.googleUserID?.isEmpty == true { owner.googleUserID = nil }
        if owner.email?.isEmpty == true { owner.email = nil }
        return owner
    }

    fileprivate var isKnown: Bool { googleUserID != nil || email != nil }

    fileprivate var displayName: String { email ?? googleUserID ?? "another Google account" }
}
