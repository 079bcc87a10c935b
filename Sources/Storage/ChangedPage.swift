/// The number of grants that one part of a long change reads: other writers wait for some hundredths of a second.
package let changedPageSize = 5_000

/// One part of a long change, in a transaction of its own.
package struct ChangedPage<Cursor: Sendable>: Sendable {
    /// The number of rows that this part changed.
    package var changed: Int
    /// The position after which the next part begins; `nil` at the end.
    package var next: Cursor?

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
