/// The body of a request or of an answer: bytes that never print and are overwritten when the last holder lets go.
///
/// The array that a body was made from is not wiped; ``FormBody`` makes one without such a copy.
package final class HTTPBody: Sendable {
    private let content: WipedBytes

    init(_ content: consuming WipedBytes) {
        self.content = content
    }

    package init(_ bytes: [UInt8]) {
        var content = WipedBytes(capacity: bytes.count)
        content.append(bytes)
        self.content = content
    }

    package var count: Int { content.count }

    /// Lends the bytes for reading.
    package func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try content.withBytes(body)
    }

    /// Where the bytes lie, for a C function that reads them later: good while the body is held.
    @unsafe
    var address: UnsafeRawPointer? { unsafe content.address }

    /// A copy of the bytes, which prints and is not wiped: for readers that cannot take a span.
    package func reveal() -> [UInt8] {
        withBytes { span in unsafe span.withUnsafeBytes { bytes in unsafe Array(bytes) } }
    }
}

extension HTTPBody: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "<\(count) bytes>" }

    package var debugDescription: String { description }

    /// Empty, because `dump` and whatever else walks mirrors would pass by the descriptions.
    package var customMirror: Mirror { Mirror(self, children: []) }
}
