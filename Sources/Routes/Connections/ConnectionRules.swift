internal import Scheduler
internal import Storage

/// The rules for new tokens of a connection that might already have a grant.
///
///     ConnectionRules.decide(stored: grantOfJohn, incoming: ownerJane)
///     // Decision(relation: .switched(from: "john@gmail.com", to: "jane@gmail.com"), keepsStored: false)
enum ConnectionRules {
    enum Relation: Hashable, Sendable {
        case first
        case same
        case switched(from: String, to: String)
    }

    /// What Google said about the owner of a stored grant that does not name one.
    enum OwnerLookup: Hashable, Sendable {
        /// Google was not asked, and can be.
        case notAsked
        case found(Grant.Owner)
        /// Nobody can tell, as when the grant is dead.
        case unknown
    }

    struct Decision: Hashable, Sendable {
        var relation: Relation
        /// `true` if the stored tokens can be kept in addition to the new ones, or merged with them.
        var keepsStored: Bool
    }

    /// Decides about new tokens, or returns `nil` if the owner of the stored grant must be looked up first, because an
    /// unknown owner is not a switch.
    static func decide(stored: Grant?, lookup: OwnerLookup = .notAsked, incoming: Grant.Owner) -> Decision? {
        guard let stored else { return Decision(relation: .first, keepsStored: false) }
        let owner = stored.owner.named
        if owner.isKnown { return decide(stored, ownedBy: owner, incoming: incoming) }
        if case .found(let owner) = lookup, owner.isKnown { return decide(stored, ownedBy: owner, incoming: incoming) }
        if lookup == .notAsked, stored.canTellItsOwner { return nil }
        return Decision(relation: .same, keepsStored: false)
    }

    /// `true` if only Google knows the owner of a stored grant, and can tell.
    static func needsLookUp(of stored: Grant) -> Bool { !stored.owner.named.isKnown && stored.canTellItsOwner }

    /// `true` if one of the grants that hold a refresh token is known to belong to another account than the new one. A
    /// grant with a foreign token is not counted: its own account is not the token's.
    static func areOfOtherAccount(_ holders: [Grant], than incoming: Grant.Owner) -> Bool {
        holders.contains { !$0.hasTokenOfAnotherAccount && $0.owner.named.isOtherAccount(than: incoming) }
    }

    private static func decide(_ stored: Grant, ownedBy owner: Grant.Owner, incoming: Grant.Owner) -> Decision {
        if owner.isOtherAccount(than: incoming) {
            let relation = Relation.switched(from: owner.name(beside: incoming), to: incoming.name(beside: owner))
            return Decision(relation: relation, keepsStored: false)
        }
        return Decision(relation: .same, keepsStored: stored.canKeepTokens)
    }
}

extension ConnectionRules.Relation {
    var isSwitch: Bool {
        if case .switched = self { true } else { false }
    }
}

extension Grant {
    /// `true` if a refresh can bring a token whose owner Google names.
    fileprivate var canTellItsOwner: Bool { refreshToken != nil && !state.endsRefreshes }
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

    private var displayName: String { email ?? googleUserID ?? "another Google account" }

    /// The name of this account in a sentence that also names the other one.
    ///
    /// Two accounts have one address if the first was deleted. Then their ids tell them apart.
    fileprivate func name(beside other: Self) -> String {
        let haveOneName = displayName.lowercased() == other.displayName.lowercased()
        guard haveOneName, let googleUserID else { return displayName }
        return "\(displayName) (\(googleUserID))"
    }
}
