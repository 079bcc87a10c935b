/// Splits a stream of bytes into its JSON objects, at any size of the stream and of its chunks.
///
/// It accepts one object a line, pretty-printed objects over several lines, and one array around all of them. It finds
/// only the end of a record and does not validate its text. A broken record ends with its line, or before a line that
/// cannot belong to it, so that a good record after it is not lost. Memory is bounded by ``maximumRecordLength``.
package struct RecordSplitter {
    /// A piece of input that should be one record.
    package struct Record: Equatable, Sendable {
        package enum Content: Equatable, Sendable {
            case text([UInt8])
            case tooLong
            case tooDeep
            /// Something other than an object.
            case notAnObject
            /// The input ended inside the array around the records.
            case unclosedArray
        }

        /// The number of the line on which the record begins.
        package let line: Int
        package let content: Content

        package init(line: Int, content: Content) {
            self.line = line
            self.content = content
        }

        /// The place in messages.
        package var place: String { "line \(line)" }
    }

    static let maximumRecordLength = 1 << 20
    private static let maximumDepth = 64

    private enum Position {
        /// Before the first byte that is not blank: an array can begin only there.
        case start
        case between
        case inside
        /// After the end of an object, on the same line.
        case after
        /// Something followed an object on its line, which makes the whole line bad.
        case trailing
        case notAnObject
        case tooDeep
    }

    private var position = Position.start
    private var isInArray = false
    private var line = 1
    private var isAtLineStart = true
    private var isIndented = false

    private var recordLine = 1
    private var content: [UInt8] = []
    private var isTooLong = false
    /// The brackets that are open, outermost first.
    private var open: [UInt8] = []
    private var isInString = false
    private var isEscaped = false
    /// The last byte outside strings that is not blank.
    private var previous: UInt8 = 0

    private var records: [Record] = []

    package init() {}

    /// Reads the next bytes and returns the records that end in them.
    package mutating func feed(_ chunk: some Sequence<UInt8>) -> [Record] {
        for byte in chunk {
            process(byte)
            if byte == .newline {
                line += 1
                isAtLineStart = true
                isIndented = false
            } else if !byte.isBlank {
                isAtLineStart = false
            } else {
                isIndented = true
            }
        }
        return takeRecords()
    }

    /// Ends the input and returns the remaining records.
    package mutating func finish() -> [Record] {
        if position != .start && position != .between { endRecord() }
        if isInArray { records.append(Record(line: line, content: .unclosedArray)) }
        isInArray = false
        return takeRecords()
    }

    private mutating func takeRecords() -> [Record] {
        defer { records = [] }
        return records
    }

    private mutating func process(_ byte: UInt8) {
        switch position {
        case .start, .between: begin(byte)
        case .inside: processInside(byte)
        case .after:
            if byte == .newline {
                endRecord()
            } else if !byte.isBlank {
                append(byte)
                position = .trailing
            }
        case .trailing:
            if byte == .newline { endRecord() }
        case .notAnObject, .tooDeep: skipNonObject(byte)
        }
    }

    private mutating func begin(_ byte: UInt8) {
        // The byte order mark that some editors put in front (https://www.rfc-editor.org/rfc/rfc8259#section-8.1).
        let isMark = position == .start && line == 1 && [0xef, 0xbb, 0xbf].contains(byte)
        guard !byte.isBlank, byte != .newline, !isMark else { return }
        switch byte {
        case UInt8(ascii: "[") where position == .start:
            isInArray = true
            position = .between
        case UInt8(ascii: "]") where isInArray:
            isInArray = false
            position = .between
        case UInt8(ascii: ",") where isInArray:
            break
        case UInt8(ascii: "{"):
            recordLine = line
            position = .inside
            processInside(byte)
        default:
            recordLine = line
            position = .notAnObject
            skipNonObject(byte)
        }
    }

    private mutating func processInside(_ byte: UInt8) {
        if isInString {
            // A JSON string cannot contain a line break, so this one was never closed.
            guard byte != .newline else { return endRecord() }
            append(byte)
            processInString(byte)
        } else if byte.isBlank || byte == .newline {
            append(byte)
        } else if isAtLineStart && recordLine != line && !mayContinue(with: byte) {
            endRecord()
            begin(byte)
        } else {
            processOutsideStrings(byte)
        }
    }

    private mutating func processInString(_ byte: UInt8) {
        if isEscaped {
            isEscaped = false
        } else if byte == UInt8(ascii: "\\") {
            isEscaped = true
        } else if byte == UInt8(ascii: "\"") {
            isInString = false
        }
    }

    private mutating func processOutsideStrings(_ byte: UInt8) {
        append(byte)
        previous = byte
        switch byte {
        case UInt8(ascii: "\""): isInString = true
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            open.append(byte)
            if open.count > Self.maximumDepth {
                isInString = false
                position = .tooDeep
            }
        case UInt8(ascii: "}"), UInt8(ascii: "]"):
            open.removeLast()
            guard open.isEmpty else { break }
            if isInArray { endRecord() } else { position = .after }
        default: break
        }
    }

    /// `true` if a line that starts with this byte can belong to the object that an earlier line opened.
    private func mayContinue(with byte: UInt8) -> Bool {
        let isInObject = open.last == UInt8(ascii: "{")
        let isCloser = byte == UInt8(ascii: isInObject ? "}" : "]")
        // Pretty-printers indent nested content, so a brace in the first column begins the next record.
        if byte == UInt8(ascii: "{") && !isIndented { return false }
        switch previous {
        case UInt8(ascii: "{"): return byte == UInt8(ascii: "\"") || isCloser
        case UInt8(ascii: "["): return byte.beginsValue || isCloser
        case UInt8(ascii: ":"): return byte.beginsValue
        case UInt8(ascii: ","): return isInObject ? byte == UInt8(ascii: "\"") : byte.beginsValue
        default: return byte == UInt8(ascii: ",") || byte == UInt8(ascii: ":") || isCloser
        }
    }

    /// Skips a piece that is not an object: the rest of the line, or of the array's element.
    private mutating func skipNonObject(_ byte: UInt8) {
        if byte == .newline { return endRecord() }
        guard isInArray, position == .notAnObject else { return }
        if isInString {
            processInString(byte)
        } else if byte == UInt8(ascii: "\"") {
            isInString = true
        } else if byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") {
            endRecord()
            begin(byte)
        }
    }

    private mutating func append(_ byte: UInt8) {
        guard content.count < Self.maximumRecordLength else {
            isTooLong = true
            return
        }
        content.append(byte)
    }

    private mutating func endRecord() {
        // Drop the blanks before a line that did not belong to the record.
        while let last = content.last, last.isBlank || last == .newline { content.removeLast() }
        let recordContent: Record.Content =
            switch position {
            case .notAnObject: .notAnObject
            case .tooDeep: .tooDeep
            default: isTooLong ? .tooLong : .text(content)
            }
        records.append(Record(line: recordLine, content: recordContent))
        position = .between
        content = []
        isTooLong = false
        open = []
        isInString = false
        isEscaped = false
        previous = 0
    }
}

extension UInt8 {
    fileprivate static let newline = UInt8(ascii: "\n")

    fileprivate var isBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0d }

    fileprivate var beginsValue: Bool {
        switch self {
        case UInt8(ascii: "\""), UInt8(ascii: "{"), UInt8(ascii: "["), UInt8(ascii: "-"), 0x30...0x39,
            UInt8(ascii: "t"), UInt8(ascii: "f"), UInt8(ascii: "n"):
            true
        default: false
        }
    }
}
