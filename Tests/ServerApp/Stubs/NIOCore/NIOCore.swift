// What the examples use of swift-nio, with its declarations, and with bodies for the tests.

/// Bytes that were received.
package struct ByteBuffer: Sendable {
    private var bytes: [UInt8]

    package init(bytes: some Sequence<UInt8>) { self.bytes = Array(bytes) }

    package var readableBytesView: ByteBufferView { ByteBufferView(bytes: bytes) }
}

/// A collection of a buffer's bytes.
package struct ByteBufferView: RandomAccessCollection, Sendable {
    let bytes: [UInt8]

    package var startIndex: Int { 0 }
    package var endIndex: Int { bytes.count }

    package subscript(position: Int) -> UInt8 { bytes[position] }
}

/// A span of time.
package struct TimeAmount: Hashable, Sendable {
    package let nanoseconds: Int64

    package static func seconds(_ amount: Int64) -> TimeAmount { TimeAmount(nanoseconds: amount * 1_000_000_000) }
}
