extension String {
    /// The text with escapes for control and format characters (bidirectional marks, terminal escapes), which could
    /// rewrite a message.
    ///
    /// A joiner stays between letters or emoji that it joins, as in a Persian name.
    package var escapingInvisible: String {
        var shown = ""
        let scalars = Array(unicodeScalars)
        for (index, scalar) in scalars.enumerated() {
            if scalar.isInvisible, !scalars.joinsNeighbours(at: index) {
                shown += scalar.escape
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }
}

extension [Unicode.Scalar] {
    /// Returns `true` if a joiner stands at this position, between two scalars that take it.
    fileprivate func joinsNeighbours(at index: Int) -> Bool {
        guard self[index].isJoiner, index > 0, index + 1 < count else { return false }
        return self[index - 1].takesJoiner && self[index + 1].takesJoiner
    }
}

extension Unicode.Scalar {
    /// The zero-width joiner and non-joiner.
    fileprivate var isJoiner: Bool { value == 0x200c || value == 0x200d }

    /// `true` if a joiner beside it changes how it is drawn: a letter or mark of an Arabic or Indic script, or an emoji.
    ///
    /// Beside a Latin letter a joiner cannot be seen, and would make two names look alike.
    fileprivate var takesJoiner: Bool {
        switch properties.generalCategory {
        case .otherLetter, .nonspacingMark, .spacingMark: true
        default: properties.isEmoji && !isASCII
        }
    }
}
