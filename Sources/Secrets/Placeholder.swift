package struct SealedSecret: Hashable, Sendable {
    package var bytes: [UInt8]
    package init(bytes: [UInt8]) throws { self.bytes = bytes }
}
package struct KeyID: Hashable, Sendable, Comparable {
    package var text: String
    package static func < (a: KeyID, b: KeyID) -> Bool { a.text < b.text }
}
