import Base

/// Where the value of a setting comes from.
enum SettingOrigin: Equatable, Sendable {
    case flag(Setting.Name)
    case variable(String)
    case line(FileLine, key: String)
    /// A line of the credential that holds the client ids.
    case clientIDCredential(line: Int)
    case defaultValue(of: Setting.Name)

    /// A line of the configuration file.
    struct FileLine: Equatable, Sendable {
        let path: String
        let number: Int
    }
}

extension SettingOrigin {
    var source: ShownSetting.Source {
        switch self {
        case .flag: .flag
        case .variable: .environment
        case .line: .file
        case .clientIDCredential: .credential
        case .defaultValue: .standard
        }
    }

    /// `true` for a command-line argument, which every user of the machine can read.
    var isArgument: Bool {
        if case .flag = self { true } else { false }
    }

    var variable: String? {
        if case .variable(let variable) = self { variable } else { nil }
    }

    var fileLine: FileLine? {
        if case .line(let line, _) = self { line } else { nil }
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
        case .defaultValue(let name): "default of --\(name.rawValue)"
        }
    }
}

extension SettingOrigin.FileLine: CustomStringConvertible {
    /// `/etc/refresh-worker/refresh-worker.conf:12`
    var description: String { "\(path):\(number)" }
}
