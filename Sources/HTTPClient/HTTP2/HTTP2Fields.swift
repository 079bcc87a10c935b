private import Base
internal import CNGHTTP2
private import Crypto

/// Header fields in the form that nghttp2 takes, prepared once for all requests that share them.
///
/// `@unchecked Sendable` holds because nothing changes after `init`.
@safe
final class HTTP2Fields: @unchecked Sendable {
    /// The names and values, one after the other.
    private let text: ErasedBytes
    private let fields: UnsafeMutableBufferPointer<nghttp2_nv>

    /// - Parameters:
    ///   - fields: names in lower case, and values, with pseudo-header fields first.
    ///   - isSecret: `true` if a value might be a secret. Then neither side keeps the fields for later requests.
    init(_ fields: [(name: String, value: String)], isSecret: Bool) {
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

    /// Calls the closure with these fields, the others, and the length of the body unless it is `nil`.
    ///
    /// nghttp2 copies only the length: both objects must exist until nghttp2 has sent the fields.
    func withFields<Result>(
        and others: HTTP2Fields,
        bodyLength: Int?,
        _ body: (UnsafeBufferPointer<nghttp2_nv>) -> Result
    ) -> Result {
        var digits = ""
        if let bodyLength { digits = String(bodyLength) }
        return unsafe Self.lengthName.withUnsafeBufferPointer { name in
            digits.withUTF8 { digits in
                let capacity = unsafe fields.count + others.fields.count + 1
                return unsafe withUnsafeTemporaryAllocation(of: nghttp2_nv.self, capacity: capacity) { all in
                    var count = unsafe all.initialize(fromContentsOf: fields)
                    count = unsafe all[count...].initialize(fromContentsOf: others.fields)
                    if bodyLength != nil {
                        let length = unsafe nghttp2_nv(
                            name: UnsafeMutablePointer(mutating: name.baseAddress),
                            value: UnsafeMutablePointer(mutating: digits.baseAddress),
                            namelen: name.count,
                            valuelen: digits.count,
                            flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)
                        )
                        unsafe all.initializeElement(at: count, to: length)
                        count += 1
                    }
                    return unsafe body(UnsafeBufferPointer(rebasing: all[..<count]))
                }
            }
        }
    }

    private static let lengthName = Array("content-length".utf8)
}

extension HTTP2Fields {
    /// Prepares the fields of a pattern.
    ///
    /// The client adds its user agent, and the length of each body.
    convenience init(method: RequestPattern.Method, endpoint: Endpoint, headers: [(String, String)], isSecret: Bool) {
        var fields = [
            (name: ":method", value: method.rawValue),
            (name: ":path", value: endpoint.target),
            (name: ":scheme", value: endpoint.scheme),
            (name: ":authority", value: endpoint.authority),
            (name: "accept", value: "*/*"),
        ]
        for (name, value) in headers {
            let name = name.lowercased()
            fields.removeAll { $0.name == name }
            // HTTP/2 allows no blanks around a value (https://www.rfc-editor.org/rfc/rfc9113#section-8.2.1).
            fields.append((name, String(Substring(value.utf8.trimmingBlanks))))
        }
        if method == .post, !fields.contains(where: { $0.name == "content-type" }) {
            fields.append((name: "content-type", value: FormBody.contentType))
        }
        self.init(fields, isSecret: isSecret)
    }
}
