internal import CNGHTTP2
private import Crypto

/// The header fields of a request, in the form that nghttp2 takes.
///
/// Requests of one kind share a head, so that their fields are prepared once.
///
/// `@unchecked Sendable` holds because nothing changes after `init`.
@safe
package final class HTTP2RequestHead: @unchecked Sendable {
    /// `true` if the request has a body, even an empty one, whose length is sent.
    package let hasBody: Bool
    /// The names and values, one after the other.
    private let text: ErasedBytes
    private let fields: UnsafeMutableBufferPointer<nghttp2_nv>

    /// - Parameters:
    ///   - fields: names in lower case, and values; pseudo-header fields first.
    ///   - isSecret: `true` if a value may be a secret. Then neither side keeps the fields for later requests.
    ///   - hasBody: `true` if the request has a body.
    package init(_ fields: [(name: String, value: String)], isSecret: Bool, hasBody: Bool) {
        self.hasBody = hasBody
        var text = ErasedBytes(capacity: fields.reduce(1) { $0 + $1.name.utf8.count + $1.value.utf8.count })
        for (name, value) in fields {
            text.append(Array(name.utf8))
            text.append(Array(value.utf8))
        }
        unsafe self.fields = .allocate(capacity: fields.count)
        let indexing = isSecret ? NGHTTP2_NV_FLAG_NO_INDEX.rawValue : 0
        let flags = NGHTTP2_NV_FLAG_NO_COPY_NAME.rawValue | NGHTTP2_NV_FLAG_NO_COPY_VALUE.rawValue | indexing
        var next = unsafe UnsafeMutablePointer(mutating: text.address?.assumingMemoryBound(to: UInt8.self))
        for (index, field) in fields.enumerated() {
            let (nameLength, valueLength) = (field.name.utf8.count, field.value.utf8.count)
            let value = unsafe next.map { unsafe $0 + nameLength }
            unsafe self.fields.initializeElement(
                at: index,
                to: nghttp2_nv(
                    name: next,
                    value: value,
                    namelen: nameLength,
                    valuelen: valueLength,
                    flags: UInt8(flags)
                )
            )
            unsafe next = unsafe value.map { unsafe $0 + valueLength }
        }
        self.text = text
    }

    deinit {
        unsafe fields.deallocate()
    }

    /// Calls the closure with the fields, and with the length of the body if the request has one.
    ///
    /// nghttp2 copies only the length: the head must exist until nghttp2 has sent the fields.
    func withFields<Result>(
        bodyLength: Int,
        _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        guard hasBody else { return unsafe body(UnsafeBufferPointer(fields)) }
        var name = Self.lengthName
        var digits = Array(String(bodyLength).utf8)
        return unsafe name.withUnsafeMutableBufferPointer { name in
            unsafe digits.withUnsafeMutableBufferPointer { digits in
                unsafe withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: fields.count + 1) { all in
                    _ = unsafe all.initialize(fromContentsOf: fields)
                    let length = unsafe nghttp2_nv(
                        name: name.baseAddress,
                        value: digits.baseAddress,
                        namelen: name.count,
                        valuelen: digits.count,
                        flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
                    )
                    unsafe all.initializeElement(at: fields.count, to: length)
                    return unsafe body(UnsafeBufferPointer(all))
                }
            }
        }
    }

    private static let lengthName = Array("content-length".utf8)
}
