import Base
import HTTPClient

/// The place of a login's keys.
enum KeyLocation: Equatable, Sendable {
    case endpoint(Endpoint)
    case file(String)
}

extension SettingValue {
    static func keyLocations(_ text: String) throws(InputError) -> [KeyLocation] {
        try list(text, of: "URL or file") { piece throws(InputError) in
            piece.contains("://") ? .endpoint(try endpoint(piece)) : .file(piece)
        }
    }
}
