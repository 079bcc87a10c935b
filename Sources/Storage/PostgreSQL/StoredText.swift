/// Text in a form that PostgreSQL can store: it accepts every character but NUL
/// (https://www.postgresql.org/docs/15/datatype-character.html), which a name or an id from outside may contain.
///
/// SUBSTITUTE (1A hexadecimal) and a zero stand for NUL, SUBSTITUTE and a Z for SUBSTITUTE itself; all other characters
/// stay.
enum StoredText {
    private static let mark: UInt8 = 0x1a
    private static let null = UInt8(ascii: "0")
    private static let itself = UInt8(ascii: "Z")

    static func write(_ text: String, to buffer: inout [UInt8]) {
        guard text.utf8.contains(where: { $0 == 0 || $0 == mark }) else {
            buffer.append(contentsOf: text.utf8)
            return
        }
        for byte in text.utf8 {
            switch byte {
            case 0: buffer += [mark, null]
            case mark: buffer += [mark, itself]
            default: buffer.append(byte)
            }
        }
    }

    static func read(_ stored: some Collection<UInt8>) -> String {
        guard stored.contains(mark) else { return String(decoding: stored, as: UTF8.self) }
        var bytes: [UInt8] = []
        var isMarked = false
        for byte in stored {
            if isMarked {
                bytes.append(byte == null ? 0 : mark)
                isMarked = false
            } else if byte == mark {
                isMarked = true
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
