internal import Crypto

/// The body of a request or response: bytes that are never printed and are overwritten when the last reference is
/// released.
///
/// The array that a body was made from is not wiped. ``FormBody`` builds a body without such a copy.
package final class HTTPBody: Sendable {
    private let content: ErasedBytes

    init(_ content: consuming ErasedBytes) {
        self.content = content
    }

    package init(_ bytes: [UInt8]) {
        var content = ErasedBytes(capacity: bytes.count)
        content.append(bytes)
        self.content = content
    }

    var count: Int { content.count }

    /// Calls the closure with the bytes.
    package func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try content.withBytes(body)
    }

    /// The address of the bytes, for a C function that reads them later. It is valid as long as this object exists.
    @unsafe
    var address: UnsafeRawPointer? { unsafe content.address }

    /// Returns a copy of the bytes, for readers that cannot take a span.
    ///
    /// The copy can be printed and is not wiped.
    package func reveal() -> [UInt8] {
        withBytes { span in unsafe span.withUnsafeBytes { bytes in unsafe Array(bytes) } }
    }
}

extension HTTPBody: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<\(count) bytes>" }

    package var debugDescription: String { description }

    /// Empty, because `dump` and other users of mirrors would bypass the descriptions.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
