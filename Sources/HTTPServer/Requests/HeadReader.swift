/// Collects a request's header fields and finds text between them that libmicrohttpd does not report.
///
/// libmicrohttpd ends a value at a NUL, and a proxy might read on after it. The fields are in the order of their lines
/// in the memory of the head. Between two of them only blanks and a line end are allowed, which libmicrohttpd
/// overwrites: CRLF with two NULs, and a bare LF with one. So a NUL before CRLF shows as a third one. A NUL before a
/// bare LF looks like CRLF and is not found.
@safe
struct HeadReader {
    private(set) var fields: [ServerRequest.Field] = []
    private let head: UnsafeRawBufferPointer
    /// The offset after the last value in the head, or `nil` before the first field.
    private var end: Int?
    private var hasHiddenText = false

    init(head: UnsafeRawBufferPointer) {
        unsafe self.head = unsafe head
    }

    mutating func append(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        fields.append((unsafe String(decoding: name, as: UTF8.self), unsafe String(decoding: value, as: UTF8.self)))
        guard let nameStart = unsafe offset(of: name) else {
            hasHiddenText = true
            return
        }
        if let end { checkGap(from: end, to: nameStart, maximumLineEnds: 1) }
        // The offset after the name and its colon.
        let nameEnd = nameStart + name.count + 1
        end = nameEnd
        guard unsafe !value.isEmpty else { return }
        guard let valueStart = unsafe offset(of: value) else {
            // A folded line, which libmicrohttpd joins in other memory
            // (https://www.rfc-editor.org/rfc/rfc9112#section-5.2).
            hasHiddenText = true
            return
        }
        checkGap(from: nameEnd, to: valueStart, maximumLineEnds: 0)
        end = valueStart + value.count
    }

    /// Checks the rest of the head, and returns `true` if the head holds text that is not part of a field.
    mutating func finish() -> Bool {
        // The last field's line end, and the empty line.
        if let end { checkGap(from: end, to: unsafe head.count, maximumLineEnds: 2) }
        return hasHiddenText
    }

    private func offset(of part: UnsafeRawBufferPointer) -> Int? {
        guard let base = unsafe head.baseAddress, let start = part.baseAddress else { return nil }
        let offset = unsafe start - base
        return unsafe (0...head.count).contains(offset) ? offset : nil
    }

    private mutating func checkGap(from start: Int, to end: Int, maximumLineEnds: Int) {
        guard start <= end else {
            hasHiddenText = true
            return
        }
        let gap = unsafe head[start..<end]
        let ends = unsafe gap.count { $0 == 0x00 }
        let blanks = unsafe gap.count { $0 == 0x09 || $0 == 0x20 }
        if unsafe ends > 2 * maximumLineEnds || ends + blanks < gap.count { hasHiddenText = true }
    }
}
