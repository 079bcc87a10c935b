/// The version of a grant's row, as a claim has read it.
///
/// All versions are equal to each other: a version says when the row was written, and not what it contains.
package struct RowVersion: Hashable, Sendable {
    /// The number of the version; `nil` if the store does not number them.
    package let number: Int64?

    package init(_ number: Int64? = nil) {
        self.number = number
    }

    package static func == (_: RowVersion, _: RowVersion) -> Bool { true }

    package func hash(into _: inout Hasher) {}
}
