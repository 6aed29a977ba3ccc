//! The parser of preset files, which are in TOML format. It is strict: an unknown name, a missing
//! parameter or a value out of range is an error with file, line and remedy.

use super::{Def, Param, Preset, Source, Value, unknown};
use crate::error::DeviceError;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

const SHAPE: &str = "write `key = { value = ..., unit = \"...\", source = \"...\" }`";

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        let at = at.min(self.text.len());
        1 + self.text.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
    }
    fn err(&self, at: usize, what: impl Into<String>, remedy: impl Into<String>) -> DeviceError {
        DeviceError::Preset {
            file: self.file.to_owned(),
            line: self.line(at),
            what: what.into(),
            remedy: remedy.into(),
        }
    }
    fn text_of(&self, key: &str, v: &Spanned<DeValue<'_>>) -> Result<String, DeviceError> {
        let text = v
            .get_ref()
            .as_str()
            .map(str::trim)
            .filter(|s| !s.is_empty());
        text.map(str::to_owned).ok_or_else(|| {
            self.err(
                v.span().start,
                format!("`{key}` must be a non-empty text"),
                "put it in quotes",
            )
        })
    }
    fn entry<'t, 'i>(
        &self,
        table: &'t DeTable<'i>,
        key: &str,
        at: usize,
    ) -> Result<&'t Spanned<DeValue<'i>>, DeviceError> {
        lookup(table, key).map(|(_, v)| v).ok_or_else(|| {
            self.err(
                at,
                format!("`{key}` is missing"),
                format!("add a line `{key} = ...`"),
            )
        })
    }
    fn number(&self, v: &Spanned<DeValue<'_>>) -> Option<f64> {
        match v.get_ref() {
            DeValue::Integer(i) if i.radix() == 10 => i.as_str().parse().ok(),
            DeValue::Float(f) => f.as_str().parse().ok(),
            _ => None,
        }
    }
    fn pairs(&self, v: &Spanned<DeValue<'_>>) -> Option<Vec<(f64, f64)>> {
        let rows = v.get_ref().as_array()?;
        rows.iter()
            .map(|row| match row.get_ref().as_array()?.as_ref() {
                [a, b] => Some((self.number(a)?, self.number(b)?)),
                _ => None,
            })
            .collect()
    }

    fn param(
        &self,
        def: &'static Def,
        at: usize,
        v: &Spanned<DeValue<'_>>,
    ) -> Result<Param, DeviceError> {
        let key = def.key;
        let Some(fields) = v.get_ref().as_table() else {
            return Err(self.err(at, format!("`{key}` has no unit and no source"), SHAPE));
        };
        for k in fields.keys() {
            if !matches!(k.get_ref().as_ref(), "value" | "unit" | "source") {
                let what = format!("unknown field \"{}\" of `{key}`", k.get_ref());
                return Err(self.err(k.span().start, what, SHAPE));
            }
        }
        let source = self.text_of("source", self.entry(fields, "source", at)?)?;
        let (source, reference) = split_source(&source).ok_or_else(|| {
            let words: Vec<_> = Source::WORDS.iter().map(|w| w.0).collect();
            self.err(
                at,
                format!("source of `{key}` does not start with a known word"),
                format!(
                    "begin with one of: {}; then `: ` and the reference",
                    words.join(", ")
                ),
            )
        })?;
        let unit = match lookup(fields, "unit") {
            Some((_, u)) => Some(self.text_of("unit", u)?),
            None => None,
        };
        let factor = match (&unit, def.dim.needs_unit()) {
            (Some(u), true) => def.dim.factor(u).ok_or_else(|| {
                self.err(
                    at,
                    format!("`{key}` cannot be given in {u}"),
                    format!("use one of: {}", def.dim.units()),
                )
            })?,
            (None, true) => {
                return Err(self.err(
                    at,
                    format!("`{key}` has no unit"),
                    format!("add `unit = \"...\"`, one of: {}", def.dim.units()),
                ));
            }
            (Some(_), false) => {
                let what = format!("`{key}` takes no unit");
                return Err(self.err(at, what, "remove it"));
            }
            (None, false) => 1.0,
        };
        let given = self.entry(fields, "value", at)?;
        let value = if let Some(x) = self.number(given) {
            def.dim.number(x, factor)
        } else if let Some(p) = self.pairs(given) {
            match def.dim {
                super::Dim::Pairs(_) => Ok(Value::Pairs(p)),
                _ => Err("a list is not allowed here".to_owned()),
            }
        } else if let Some(b) = given.get_ref().as_bool() {
            def.dim.read(if b { "yes" } else { "no" })
        } else if let (Some(w), false) = (given.get_ref().as_str(), def.dim.needs_unit()) {
            def.dim.read(w)
        } else {
            Err(format!("`{key}` has a value of the wrong type"))
        };
        let value = value.and_then(|v| def.check(v)).map_err(|e| {
            let about = format!("`{key}`");
            let what = if e.starts_with(&about) {
                e
            } else {
                format!("{about}: {e}")
            };
            self.err(
                at,
                what,
                format!("correct the value; its meaning: {}", def.doc),
            )
        })?;
        Ok(Param {
            def,
            value,
            source,
            reference,
            line: self.line(at),
        })
    }
}

fn lookup<'t, 'i>(
    table: &'t DeTable<'i>,
    key: &str,
) -> Option<(&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    table.iter().find(|(k, _)| k.get_ref().as_ref() == key)
}

fn split_source(text: &str) -> Option<(Source, String)> {
    Source::WORDS.iter().find_map(|(word, source)| {
        let rest = text.strip_prefix(word)?;
        let rest = match rest.strip_prefix(':') {
            Some(r) => r.trim(),
            None if rest.is_empty() => rest,
            None => return None,
        };
        Some((*source, rest.to_owned()))
    })
}

impl Preset {
    /// Returns the kind that a preset file names, and the line of that name. Does not check the
    /// rest of the file.
    pub fn kind_of(file: &str, text: &str) -> Result<(String, usize), DeviceError> {
        let r = Reader { file, text };
        let root = r.root()?;
        let kind = r.entry(root.get_ref(), "kind", 0)?;
        Ok((r.text_of("kind", kind)?, r.line(kind.span().start)))
    }

    /// Parses a preset of a kind with these declarations.
    pub fn parse(
        kind: &'static str,
        defs: &'static [Def],
        file: &str,
        text: &str,
    ) -> Result<Preset, DeviceError> {
        let r = Reader { file, text };
        let root = r.root()?;
        let root = root.get_ref();
        for k in root.keys() {
            if !matches!(
                k.get_ref().as_ref(),
                "kind" | "name" | "aliases" | "summary" | "year" | "params"
            ) {
                let what = format!("unknown key \"{}\"", k.get_ref());
                return Err(r.err(
                    k.span().start,
                    what,
                    "valid keys are kind, name, aliases, summary, year and the table [params]",
                ));
            }
        }
        let mut aliases = vec![];
        if let Some((k, v)) = lookup(root, "aliases") {
            let list = v.get_ref().as_array().ok_or_else(|| {
                r.err(
                    k.span().start,
                    "`aliases` must be a list of names",
                    "write [\"a\", \"b\"]",
                )
            })?;
            for name in list.iter() {
                aliases.push(r.text_of("aliases", name)?);
            }
        }
        let mut year = None;
        if let Some((k, v)) = lookup(root, "year") {
            let n = r.number(v).filter(|y| (1956.0..=2100.0).contains(y));
            let bad = || {
                let what = "`year` must be a year from 1956 to 2100";
                r.err(k.span().start, what, "write year = 2013")
            };
            year = Some(n.ok_or_else(bad)? as u16);
        }
        let (at, params) = match lookup(root, "params") {
            Some((k, v)) => (k.span().start, v.get_ref().as_table()),
            None => (0, None),
        };
        let params = params.ok_or_else(|| {
            r.err(
                at,
                "no table [params]",
                "add it, with one line per parameter",
            )
        })?;
        let mut out = vec![];
        for (k, v) in params.iter() {
            let key = k.get_ref().as_ref();
            let at = k.span().start;
            let def = defs.iter().find(|d| d.key == key).ok_or_else(|| {
                let what = unknown(key, defs.iter().map(|d| d.key));
                r.err(
                    at,
                    what,
                    format!("`seekwell devices {kind}:NAME` lists the parameters"),
                )
            })?;
            out.push(r.param(def, at, v)?);
        }
        for def in defs {
            let Some(text) = def.default else { continue };
            if out.iter().all(|p: &Param| p.def.key != def.key) {
                let value = def
                    .dim
                    .read(text)
                    .map_err(|e| r.err(at, e, "correct the default"))?;
                out.push(Param {
                    def,
                    value,
                    source: Source::Default,
                    reference: String::new(),
                    line: 0,
                });
            }
        }
        out.sort_by_key(|p| defs.iter().position(|d| d.key == p.def.key));
        Ok(Preset {
            kind,
            name: r.text_of("name", r.entry(root, "name", 0)?)?,
            aliases,
            summary: r.text_of("summary", r.entry(root, "summary", 0)?)?,
            year,
            file: file.to_owned(),
            params: out,
        })
    }
}

impl<'a> Reader<'a> {
    fn root(&self) -> Result<Spanned<DeTable<'a>>, DeviceError> {
        DeTable::parse(self.text).map_err(|e| {
            let at = e.span().map_or(0, |s| s.start);
            self.err(at, e.message().to_owned(), "see the TOML syntax at toml.io")
        })
    }
}
