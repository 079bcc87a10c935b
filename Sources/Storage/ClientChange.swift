package import Base
private import Crypto

/// Moves a grant to another client id on an operator's request: it was stored for the wrong one.
package enum ClientChange {
    /// The result for one grant.
    package enum Outcome: Hashable, Sendable {
        case moved
        /// The grant was refused as if it belonged to another client id; it is tried again now.
        case movedAndDue
        /// A worker holds the grant's lease: its request names the former client id.
        case inFlight
    }

    package static func move(
        _ grant: Grant,
        to clientID: String,
        in transaction: any StoreTransaction,
        at now: Timestamp
    ) throws -> Outcome {
        if grant.lease?.isLive(at: transaction.leaseTime) ?? false { return .inFlight }
        var changed = grant
        let events = changed.changeClient(to: clientID, at: now)
        try transaction.update(changed)
        for event in events { try transaction.record(event) }
        return grant.mayBelongToAnotherClient && changed.dueAt == now ? .movedAndDue : .moved
    }
}

extension Grant {
    /// `true` if the refresh token was refused as one of another client id.
    var mayBelongToAnotherClient: Bool {
        [.clientMismatch, .clientMismatchUnconfirmed].contains(reason)
    }
}

/// The Cloud project that a client id belongs to: Google's ids begin with the project's number.
enum ClientProject {
    /// `true` if two client ids belong to one project: they are equal, or begin with the same number and a dash.
    static func same(_ first: String, _ second: String) -> Bool {
        if first == second { return true }
        guard let project = number(of: first) else { return false }
        return project == number(of: second)
    }

    private static func number(of clientID: String) -> Substring? {
        guard let dash = clientID.firstIndex(of: "-") else { return nil }
        let digits = clientID[..<dash]
        return digits.isDecimalNumber ? digits : nil
    }
}

/// The number of grants that one part of a long change reads: other writers wait for some hundredths of a second.
let changedPageSize = 5_000

/// One part of a long change, in a transaction of its own.
package struct ChangedPage<Cursor: Sendable>: Sendable {
    /// The number of rows that this part changed.
    var changed: Int
    /// The position after which the next part begins; `nil` at the end.
    var next: Cursor?

    package init(changed: Int, next: Cursor?) {
        self.changed = changed
        self.next = next
    }
}

/// Runs a long change part by part, so that other writers do not wait for all of it; returns the number of changed
/// rows.
///
/// It ends early if its task is cancelled.
@discardableResult
package func changePages<Cursor: Sendable>(
    after first: Cursor,
    _ change: (Cursor) async throws -> ChangedPage<Cursor>
) async throws -> Int {
    var changed = 0
    var cursor: Cursor? = first
    while let position = cursor, !Task.isCancelled {
        let page = try await change(position)
        changed += page.changed
        cursor = page.next
    }
    return changed
}
