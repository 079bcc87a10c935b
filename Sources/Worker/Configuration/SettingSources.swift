/// The given settings, layer by layer, before their values are parsed.
package struct SettingSources {
    /// One given value and its origin.
    package struct GivenValue: Equatable {
        let value: String
        /// The origin as an error names it: `--max-rate`, `environment variable …` or `file:line: …`.
        let origin: String
        /// `true` if the value is a command-line argument, which every user of the machine can read.
        var isArgument = false

        package init(value: String, origin: String, isArgument: Bool = false) {
            self.value = value
            self.origin = origin
            self.isArgument = isArgument
        }
    }

    /// The values of each layer for each setting, in order of precedence; a repeated flag has several.
    private(set) var layers: [[Setting.Name: [GivenValue]]] = []
    private(set) var problems: [ConfigurationError.Problem] = []
    /// The configuration file that was named, if any.
    private(set) var file: String?

    init(_ inputs: ConfigurationInputs) {
        let flags = Self.flagLayer(inputs.flags)
        layers.append(flags)
        let environment = environmentLayer(inputs.environment)
        layers.append(environment)
        if let given = flags[.config]?.last ?? environment[.config]?.last {
            file = given.value
            layers.append(fileLayer(given, inputs.files))
        }
    }

    private static func flagLayer(_ flags: [ConfigurationInputs.Flag]) -> [Setting.Name: [GivenValue]] {
        var layer: [Setting.Name: [GivenValue]] = [:]
        for flag in flags {
            let given = GivenValue(value: flag.value, origin: "--\(flag.name.rawValue)", isArgument: true)
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
            let origin = "environment variable \(DisplayedText(variable))"
            guard let name = recognise(variable, origin: origin, isNamedByOrigin: true) else { continue }
            add(GivenValue(value: environment[variable] ?? "", origin: origin), to: name, in: &layer)
        }
        return layer
    }

    private mutating func fileLayer(_ file: GivenValue, _ files: FileReader) -> [Setting.Name: [GivenValue]] {
        var layer: [Setting.Name: [GivenValue]] = [:]
        let path = file.value
        do throws(SettingValue.Refusal) {
            try SettingValue.checkText(path)
        } catch {
            problems.append(.init(origin: file.origin, message: error.message))
            return layer
        }
        let content: [UInt8]
        do throws(FileReader.Failure) {
            content = try files.read(path)
        } catch {
            problems.append(
                .init(
                    origin: "configuration file \(DisplayedText(path))",
                    message: error.reason,
                    mayPass: error.mayPass
                )
            )
            return layer
        }
        let parsed = EnvironmentFile(parsing: content)
        for mistake in parsed.mistakes {
            problems.append(.init(origin: "\(path):\(mistake.line)", message: mistake.message))
        }
        // The same order as in the environment; of several lines with the same key the last wins, as in systemd.
        for entry in parsed.entries.filter(\.key.isSharedName) + parsed.entries.filter({ !$0.key.isSharedName }) {
            guard let name = recognise(entry.key, origin: "\(path):\(entry.line)", isNamedByOrigin: false)
            else { continue }
            let origin = "\(path):\(entry.line): \(entry.key)"
            guard name != .config else {
                problems.append(.init(origin: origin, message: "cannot be set in the configuration file itself"))
                continue
            }
            add(GivenValue(value: entry.value, origin: origin), to: name, in: &layer)
        }
        return layer
    }

    /// Adds a value; an empty one means "not set here", so that the next layer decides.
    private func add(_ given: GivenValue, to name: Setting.Name, in layer: inout [Setting.Name: [GivenValue]]) {
        if !given.value.isEmpty {
            layer[name] = [given]
        }
    }

    /// Returns the setting of a key; records a problem for an unknown key.
    private mutating func recognise(_ key: String, origin: String, isNamedByOrigin: Bool) -> Setting.Name? {
        if key.isSharedName { return .clientID }
        if let name = Setting.Name.allCases.first(where: { $0.environmentName == key }) { return name }
        let names = Setting.Name.allCases.map(\.environmentName) + [Setting.sharedClientIDName]
        // The most likely mistakes are a key without the prefix, or one spelled like the flag.
        let asVariable = key.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
        let nearest =
            names.first { $0 == Setting.environmentPrefix + asVariable } ?? NameSuggestion.of(key, among: names)
        let hint = nearest.map { "; did you mean \($0)?" } ?? "; refresh-worker --help lists the settings"
        let shown = isNamedByOrigin ? "" : "\(DisplayedText(key)) "
        problems.append(.init(origin: origin, message: "\(shown)is not a setting\(hint)"))
        return nil
    }
}

extension String {
    fileprivate var isSharedName: Bool { self == Setting.sharedClientIDName }
}
