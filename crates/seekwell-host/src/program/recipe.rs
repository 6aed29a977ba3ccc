//! A recipe: a TOML file that describes how a program is measured.

use super::metric::MetricOf;
use super::{ProgramError, phase};
use seekwell_core::suggest;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What happens to the cached pages of the recipe's files between prepare and run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// Written back and dropped: the run starts with a cold cache.
    #[default]
    Drop,
    /// Kept.
    Keep,
}

/// How a program is measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Name on the command line.
    pub name: String,
    /// Description in a sentence.
    #[serde(default)]
    pub about: String,
    /// Programs it needs, each with its (Debian) package.
    #[serde(default)]
    pub needs: BTreeMap<String, String>,
    /// Directories of programs besides PATH. `*` stands for one name; the last match counts.
    #[serde(default)]
    pub paths: Vec<String>,
    /// User who runs it if root starts it: some programs refuse to run as root.
    #[serde(default)]
    pub user: Option<String>,
    /// Parameters with their defaults: variables of the scripts.
    #[serde(default)]
    pub params: BTreeMap<String, toml::Value>,
    /// Whether it reads the block device itself, `$device`.
    #[serde(default)]
    pub device: bool,
    /// A script that prints the version.
    #[serde(default)]
    pub version: String,
    /// A script before the run, not measured.
    #[serde(default)]
    pub prepare: String,
    /// Cached pages of the recipe's files after that script.
    #[serde(default)]
    pub cache: Cache,
    /// The measured script.
    pub run: String,
    /// A script after the run, also after a failure.
    #[serde(default)]
    pub clean_up: String,
    /// Its metrics, the main one first; if empty, the run time.
    #[serde(default, rename = "metric")]
    pub metrics: Vec<MetricOf>,
}

/// Why a recipe cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum RecipeError {
    /// The text is not a valid recipe.
    #[error("{0}: {1}")]
    Text(String, String),
    /// The recipe has no such parameter.
    #[error("{recipe} has no parameter `{name}`{hint}")]
    Param {
        /// Name of the recipe.
        recipe: String,
        /// Name as requested.
        name: String,
        /// What may have been meant.
        hint: String,
    },
}

const TEXTS: &[(&str, &str)] = &[
    ("dbench", include_str!("../../recipes/dbench.toml")),
    ("fs_mark", include_str!("../../recipes/fs_mark.toml")),
    ("hdparm", include_str!("../../recipes/hdparm.toml")),
    ("ioping", include_str!("../../recipes/ioping.toml")),
    (
        "mariadb-scan",
        include_str!("../../recipes/mariadb-scan.toml"),
    ),
    ("nginx", include_str!("../../recipes/nginx.toml")),
    ("nginx-wrk", include_str!("../../recipes/nginx-wrk.toml")),
    ("pgbench", include_str!("../../recipes/pgbench.toml")),
    ("postmark", include_str!("../../recipes/postmark.toml")),
    ("sqlite3", include_str!("../../recipes/sqlite3.toml")),
    ("sysbench", include_str!("../../recipes/sysbench.toml")),
    ("compile", include_str!("../../recipes/compile.toml")),
];

/// All built-in recipes.
pub fn recipes() -> Vec<Recipe> {
    let all = TEXTS.iter();
    all.filter_map(|(name, text)| Recipe::parse(name, text).ok())
        .collect()
}

/// The text of a built-in recipe, for copying.
pub fn find(name: &str) -> Option<&'static str> {
    TEXTS.iter().find(|t| t.0 == name).map(|t| t.1)
}

impl Recipe {
    /// Parses a recipe; `from` names it in errors.
    ///
    /// # Errors
    /// The error in the text.
    pub fn parse(from: &str, text: &str) -> Result<Recipe, RecipeError> {
        let bad = |why: String| RecipeError::Text(from.to_owned(), why);
        let mut recipe: Recipe =
            toml::from_str(text).map_err(|e| bad(e.to_string().trim().to_owned()))?;
        if recipe.name.is_empty() || recipe.run.trim().is_empty() {
            return Err(bad("a recipe has a name and a run".to_owned()));
        }
        let plain = |n: &str| n.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        for (name, value) in &recipe.params {
            let reserved = ["dir", "device", "seed", "threads", "path"];
            if name.is_empty() || !plain(name) || reserved.contains(&name.as_str()) {
                return Err(bad(format!(
                    "params.{name}: a parameter has small letters, and is none of {}",
                    reserved.join(", ")
                )));
            }
            if value.is_table() || value.is_array() {
                return Err(bad(format!("params.{name}: is no text and no number")));
            }
        }
        if recipe.metrics.is_empty() {
            recipe.metrics.push(MetricOf::duration());
        }
        for m in &recipe.metrics {
            m.check()
                .map_err(|why| bad(format!("metric {}: {why}", m.name)))?;
        }
        Ok(recipe)
    }

    /// A recipe for a command line; the metric is its run time, or a number in its output.
    pub fn command(line: &str, metric: Option<MetricOf>) -> Recipe {
        Recipe {
            name: "cmd".to_owned(),
            about: line.to_owned(),
            needs: BTreeMap::new(),
            paths: Vec::new(),
            user: None,
            params: BTreeMap::new(),
            device: false,
            version: String::new(),
            prepare: String::new(),
            cache: Cache::Drop,
            run: line.to_owned(),
            clean_up: String::new(),
            metrics: vec![metric.unwrap_or_else(MetricOf::duration)],
        }
    }

    /// All parameters: the given values, and defaults for the others.
    ///
    /// # Errors
    /// The recipe has no such parameter.
    pub fn params(
        &self,
        given: &BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, RecipeError> {
        let said = |v: &toml::Value| match v {
            toml::Value::String(s) => s.clone(),
            v => v.to_string(),
        };
        let mut all: BTreeMap<String, String> = self
            .params
            .iter()
            .map(|(k, v)| (k.clone(), said(v)))
            .collect();
        for (name, value) in given {
            let Some(slot) = all.get_mut(name) else {
                let known: Vec<&str> = self.params.keys().map(String::as_str).collect();
                let near = suggest::did_you_mean(name, known.iter().copied(), &[]);
                let hint = match (near, known.is_empty()) {
                    (Some(near), _) => format!(": {near}"),
                    (None, true) => ": it has none".to_owned(),
                    (None, false) => format!(": there are {}", known.join(", ")),
                };
                return Err(RecipeError::Param {
                    recipe: self.name.clone(),
                    name: name.clone(),
                    hint,
                });
            };
            slot.clone_from(value);
        }
        Ok(all)
    }

    /// Checks that all required programs exist.
    ///
    /// # Errors
    /// The first program that is missing, with its package.
    pub fn check(&self) -> Result<(), ProgramError> {
        let path = phase::search_path(&self.paths);
        let there = |p: &str| std::env::split_paths(&path).any(|d| d.join(p).is_file());
        for (program, package) in &self.needs {
            if !there(program) {
                return Err(ProgramError::Missing {
                    recipe: self.name.clone(),
                    program: program.clone(),
                    package: package.clone(),
                });
            }
        }
        Ok(())
    }
}

/// Directories that match a pattern with `*` for one name, the last ones first.
pub(super) fn expand(pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else {
        return vec![PathBuf::from(pattern)];
    };
    let entries = std::fs::read_dir(before).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries
        .map(|e| Path::new(&format!("{}{after}", e.path().display())).to_owned())
        .filter(|p| p.is_dir())
        .collect();
    all.sort();
    all.reverse();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_of_ours_is_one() {
        for (name, text) in TEXTS {
            let r = Recipe::parse(name, text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(r.name, *name);
            assert!(!r.about.is_empty(), "{name}");
            // Every variable in a script is a parameter or one that Seekwell sets.
            for script in [&r.prepare, &r.run, &r.clean_up] {
                for word in script.split('$').skip(1) {
                    let name: String = word
                        .trim_start_matches('{')
                        .chars()
                        .take_while(|c| c.is_ascii_lowercase() || *c == '_')
                        .collect();
                    let own = ["dir", "device", "seed", "threads", ""];
                    let local = script.contains(&format!("{name}="))
                        || script.contains(&format!("for {name} in"));
                    assert!(
                        own.contains(&name.as_str()) || r.params.contains_key(&name) || local,
                        "{}: ${name}",
                        r.name
                    );
                }
            }
        }
        assert_eq!(recipes().len(), TEXTS.len());
    }

    #[test]
    fn a_wrong_recipe_and_a_wrong_parameter_are_told() {
        let text = "name = \"x\"\nrun = \"true\"\n[params]\nclients = 4\n";
        let r = Recipe::parse("x.toml", text).expect("a recipe");
        let given = |k: &str| BTreeMap::from([(k.to_owned(), "8".to_owned())]);
        assert_eq!(r.params(&given("clients")).expect("known")["clients"], "8");
        let e = r
            .params(&given("cliants"))
            .expect_err("unknown")
            .to_string();
        assert!(e.contains("did you mean `clients`"), "{e}");
        let e = Recipe::parse("x.toml", "name = \"x\"\nruns = \"true\"\n");
        let e = e.expect_err("unknown key").to_string();
        assert!(e.contains("x.toml") && e.contains("runs"), "{e}");
        assert!(Recipe::parse("x", "name = \"x\"\nrun = \"y\"\n[params]\nPATH = 1\n").is_err());
    }
}
