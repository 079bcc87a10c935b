/// The number of grants that one part of a long change looks at: some hundredths of a second for the writers that wait.
package let changedPageSize = 5_000

/// One part of a long change, in a transaction of its own.
package struct ChangedPage<Cursor: Sendable>: Sendable {
    /// The number of things that this part changed.
    package var changed: Int
    /// The place after which the next part begins; `nil` at the end.
    package var next: Cursor?

    package init(changed: Int, next: Cursor?) {
        self.changed = changed
        self.next = next
    }
}

/// Runs a long change part by part, so that other writers need not wait for all of it; returns how many things it changed.
///
/// It ends early when its task is cancelled.
@discardableResult
package func changePages<Cursor: Sendable>(
    after first: Cursor,
    _ change: (Cursor) async throws -> ChangedPage<Cursor>
) async throws -> Int {
    var changed = 0
    var cursor: Cursor? = first
    while let place = cursor, !Task.isCancelled {
        let page = try await change(place)
        changed += page.changed
        cursor = page.next
    }
    return changed
}
