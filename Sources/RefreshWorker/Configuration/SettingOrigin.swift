import Base

/// The place at which a setting is given.
enum SettingOrigin: Equatable, Sendable {
    case flag(Setting.Name)
    case variable(String)
    case line(FileLine, key: String)
    /// A line of the credential that holds the client ids.
    case clientIDCredential(line: Int)
    case standard(Setting.Name)

    /// A line of the configuration file.
    struct FileLine: Equatable, Sendable {
        let path: String
        let number: Int
    }
}

extension SettingOrigin: CustomStringConvertible {
    /// The place as an error names it.
    var description: String {
        switch self {
        case .flag(let name): "--\(name.rawValue)"
        case .variable(let variable): "environment variable \(DisplayedText(variable))"
        case .line(let line, let key): "\(line): \(key)"
        case .clientIDCredential(let line): "credential client-id, line \(line)"
        case .standard(let name): "default of --\(name.rawValue)"
        }
    }
}

extension SettingOrigin.FileLine: CustomStringConvertible {
    /// `/etc/refresh-worker/refresh-worker.conf:12`
    var description: String { "\(path):\(number)" }
}
