import Base

/// The given settings, layer by layer, before their values are parsed.
struct SettingSources {
    struct GivenValue: Equatable {
        let value: String
        let origin: SettingOrigin
    }

    /// The values of each layer for each setting, in order of precedence. A repeated flag has several.
    private(set) var layers: [[Setting.Name: [GivenValue]]] = []
    private(set) var problems: [Setting.Problem] = []
    /// The configuration file that was named or found, if any.
    private(set) var file: String?

    /// `true` if the settings are those of the installed service.
    var isOfInstallation: Bool {
        guard let file else { return false }
        return Installation.isFile(file)
    }

    init(_ inputs: ConfigurationInputs) {
        let flags = Self.flagLayer(inputs.flags)
        layers.append(flags)
        let environment = environmentLayer(inputs.environment)
        layers.append(environment)
        if let given = flags[.config]?.last ?? environment[.config]?.last {
            file = given.value
            if let content = content(of: given, inputs: inputs) { layers.append(fileLayer(content, path: given.value)) }
        } else {
            findFile(inputs)
        }
    }

    /// Reads the first standard file that exists.
    private mutating func findFile(_ inputs: ConfigurationInputs) {
        for path in inputs.standardFiles {
            do throws(InputError) {
                let content = try inputs.files.read(path)
                file = path
                return layers.append(fileLayer(content, path: path))
            } catch {
                guard !mayBeSkipped(path, because: error) else { continue }
                return problems.append(
                    .init(
                        origin: "configuration file \(path)",
                        message: error.message + Self.advice(about: error, path: path, inputs: inputs),
                        mayPass: error.mayPass
                    )
                )
            }
        }
    }

    /// A user who names a database needs no file. Otherwise the default database could be taken for the one of the
    /// installation.
    private func mayBeSkipped(_ path: String, because error: InputError) -> Bool {
        let isDatabaseNamed = layers.contains { $0[.database] != nil }
        if error.isMissing || isDatabaseNamed { return true }
        // `HOME` can be the folder of another user, as after `su -p`.
        return path != Installation.file && !error.mayPass
    }

    /// What a user who cannot read a configuration file can do, or nothing if its permissions are not the reason.
    private static func advice(about error: InputError, path: String, inputs: ConfigurationInputs) -> String {
        guard !error.isMissing, !error.mayPass else { return "" }
        guard let user = inputs.continuesAs else {
            guard inputs.namedFile != nil else { return ": run this as root, or name another file with --config" }
            return FileOwner.advice(onDenied: path)
        }
        let needed = FileOwner(path)?.advice() ?? "move it to a folder that this user can enter"
        return ": root continues as user \(user). If that user needs the file, \(needed). Or stay root with --no-switch"
    }

    /// Returns the value that counts for a setting, or `nil` if none is given.
    func chosen(_ name: Setting.Name) -> ShownSetting? {
        for layer in layers {
            guard let given = layer[name], let origin = given.last?.origin else { continue }
            return ShownSetting(name: name, source: origin.source, origin: origin, values: given.map(\.value))
        }
        return nil
    }

    private static func flagLayer(_ flags: [ConfigurationInputs.Flag]) -> [Setting.Name: [GivenValue]] {
        var layer: [Setting.Name: [GivenValue]] = [:]
        for flag in flags {
            let given = GivenValue(value: flag.value, origin: .flag(flag.name))
            let isRepeatable = Setting.named(flag.name)?.isRepeatable ?? false
            // The last of a repeated flag wins, as in most programs, so that a wrapper's flags can be overridden.
            layer[flag.name] = isRepeatable ? layer[flag.name, default: []] + [given] : [given]
        }
        return layer
    }

    private mutating func environmentLayer(_ environment: [String: String]) -> [Setting.Name: [GivenValue]] {
        var layer: [Setting.Name: [GivenValue]] = [:]
        let own = environment.keys.filter { $0.hasPrefix(Setting.environmentPrefix) }
        let shared = environment.keys.filter(\.isSharedName)
        // The last assignment wins: the shared name comes first because the worker's own name is more specific.
        for variable in shared + own.sorted() {
            let origin = SettingOrigin.variable(variable)
            guard let name = recognise(variable, origin: origin.description, isNamedByOrigin: true) else { continue }
            add(GivenValue(value: environment[variable] ?? "", origin: origin), to: name, in: &layer)
        }
        return layer
    }

    /// Reads the file that was named, or records the problem.
    private mutating func content(of file: GivenValue, inputs: ConfigurationInputs) -> [UInt8]? {
        let path = file.value
        do throws(InputError) {
            try InputText.checkText(path)
        } catch {
            problems.append(.init(origin: file.origin.description, message: error.message))
            return nil
        }
        do throws(InputError) {
            return try inputs.files.read(path)
        } catch {
            problems.append(
                .init(
                    origin: "configuration file \(DisplayedText(path))",
                    message: error.message + Self.advice(about: error, path: path, inputs: inputs),
                    mayPass: error.mayPass
                )
            )
            return nil
        }
    }

    private mutating func fileLayer(_ content: [UInt8], path: String) -> [Setting.Name: [GivenValue]] {
        var layer: [Setting.Name: [GivenValue]] = [:]
        let parsed = EnvironmentFile(parsing: content)
        for mistake in parsed.mistakes {
            problems.append(.init(origin: "\(path):\(mistake.line)", message: mistake.message))
        }
        // The same order as in the environment. Of several lines with the same key the last wins, as in systemd.
        for entry in parsed.entries.filter(\.key.isSharedName) + parsed.entries.filter({ !$0.key.isSharedName }) {
            let line = SettingOrigin.FileLine(path: path, number: entry.line)
            guard let name = recognise(entry.key, origin: line.description, isNamedByOrigin: false) else { continue }
            let origin = SettingOrigin.line(line, key: entry.key)
            guard name != .config else {
                problems.append(
                    .init(origin: origin.description, message: "cannot be set in the configuration file itself")
                )
                continue
            }
            add(GivenValue(value: entry.value, origin: origin), to: name, in: &layer)
        }
        return layer
    }

    /// Adds a value.
    ///
    /// An empty one means "not set here", so that the next layer decides.
    private func add(_ given: GivenValue, to name: Setting.Name, in layer: inout [Setting.Name: [GivenValue]]) {
        if !given.value.isEmpty {
            layer[name] = [given]
        }
    }

    /// Returns the setting of a key, or records a problem for an unknown one.
    ///
    /// A file that was named by mistake can hold secrets: the line of a key ring, a database URL or a PEM key is a
    /// "key" up to its first `=`. So an unknown key of a file is only shown if it resembles a setting's name.
    private mutating func recognise(_ key: String, origin: String, isNamedByOrigin: Bool) -> Setting.Name? {
        if key.isSharedName { return .clientID }
        if let name = Setting.Name.allCases.first(where: { $0.environmentName == key }) { return name }
        guard let meant = Self.settingMeant(by: key) else {
            problems.append(
                .init(origin: origin, message: "is not a setting; refresh-worker --help lists the settings")
            )
            return nil
        }
        let shown = isNamedByOrigin ? "" : "\(DisplayedText(key)) "
        problems.append(.init(origin: origin, message: "\(shown)is not a setting; did you mean \(meant)?"))
        return nil
    }

    /// Returns the variable that an unknown key probably means.
    ///
    /// The most likely mistakes are a key without the prefix, or one spelled like the flag.
    private static func settingMeant(by key: String) -> String? {
        let names = Setting.Name.allCases.map(\.environmentName) + [Setting.sharedClientIDName]
        let asVariable = key.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
        if let prefixed = names.first(where: { $0 == Setting.environmentPrefix + asVariable }) { return prefixed }
        return key.nearest(among: names)
    }
}

extension String {
    fileprivate var isSharedName: Bool { self == Setting.sharedClientIDName }
}
